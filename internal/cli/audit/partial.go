package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/filetext"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// completionIndex is the environment variable with the index of a pod of an Indexed Job.
const completionIndex = "JOB_COMPLETION_INDEX"

type partialFlags struct {
	state *command.StateFlags
	keep  *bool
	// into is the file of the partial report, or the folder of the partial reports of all parts; empty for a report.
	into string
	part string
}

func addPartial(cmd *cobra.Command, state *command.StateFlags, keep *bool) *partialFlags {
	f := &partialFlags{state: state, keep: keep}
	cmd.Flags().StringVar(&f.into, "partial", "",
		"write a partial report for audit merge to this file, or with --part into this folder, - for stdout; requires --from")
	command.Must(cmd.MarkFlagFilename("partial"))
	cmd.Flags().StringVar(&f.part, "part", "",
		"with --partial, read only one part of the files: INDEX/COUNT, with indexes from 0, "+
			"or COUNT alone for the index in "+completionIndex)
	command.CompleteNothing(cmd, "part")
	return f
}

type partRequest struct {
	// path is empty for a report of all files.
	path       string
	share      *replay.Share
	evaluation replay.Evaluation
}

// choose returns the files to read, and what to write.
func (f *partialFlags) choose(cmd *cobra.Command, paths []string) ([]auditlog.File, []string, partRequest, error) {
	if err := f.check(cmd); err != nil {
		return nil, nil, partRequest{}, err
	}
	paths, err := auditlog.Expand(paths)
	if err != nil {
		return nil, nil, partRequest{}, err
	}
	index, count, err := f.index()
	if err != nil {
		return nil, nil, partRequest{}, err
	}
	if count > 0 {
		if slices.Contains(paths, auditlog.Stdin) {
			return nil, nil, partRequest{}, command.Usagef("--part divides files, and stdin is not one")
		}
		slices.Sort(paths) // the order of the arguments does not matter
	}
	files, leftOut, err := auditlog.Files(paths)
	if err != nil || f.into == "" {
		return files, leftOut, partRequest{}, err
	}
	request := partRequest{path: f.into}
	if count > 0 {
		whole := replay.PartialFiles(files)
		request.share = &replay.Share{Index: index, Count: count, Whole: replay.DigestFiles(whole), WholeFiles: len(whole)}
		files = auditlog.Share(files, index, count)
	}
	info, err := os.Stat(f.into)
	isDir := err == nil && info.IsDir()
	switch {
	case f.into == "-":
	case request.share == nil && isDir:
		return nil, nil, request, command.Usagef("--partial %s is a folder: name a file in it, or choose a part with --part", f.into)
	case request.share != nil && err == nil && !isDir:
		return nil, nil, request, command.Usagef("--partial %s is a file: with --part, name a folder for all parts", f.into)
	case request.share != nil:
		request.path = filepath.Join(f.into, fmt.Sprintf("part-%05d-of-%05d.json", index, count))
	}
	request.evaluation, err = f.evaluation()
	return files, leftOut, request, err
}

func (f *partialFlags) check(cmd *cobra.Command) error {
	switch {
	case f.into == "" && f.part == "":
		return nil
	case f.into == "":
		return command.Usagef("--part needs --partial FILE: the report of one part says nothing about the others")
	case cmd.Flags().Changed("output"):
		return command.Usagef("-o has no effect with --partial: audit merge has it")
	case len(f.state.From) == 0:
		return command.Usagef("--partial needs --from: parts that read the cluster at different times cannot be merged; " +
			"take a snapshot with node-authorizer snapshot, and use it for all parts")
	case f.state.ReadsStdin():
		return command.Usagef("--partial cannot use --from -: put the state into a file, to be used for all parts")
	}
	return nil
}

func (f *partialFlags) index() (index, count int, err error) {
	if f.part == "" {
		return 0, 0, nil
	}
	first, second, both := strings.Cut(f.part, "/")
	if !both {
		first, second = os.Getenv(completionIndex), first
		if first == "" {
			return 0, 0, command.Usagef("--part %s: want INDEX/COUNT, because %s is not set", f.part, completionIndex)
		}
	}
	index, indexErr := strconv.Atoi(first)
	count, countErr := strconv.Atoi(second)
	switch {
	case indexErr != nil || countErr != nil || count < 1 || count > auditlog.MaxShares:
		return 0, 0, command.Usagef(
			"--part: want INDEX/COUNT, such as 0/12, with a count of 1 to %d, got %s/%s", auditlog.MaxShares, first, second,
		)
	case index < 0 || index >= count:
		return 0, 0, command.Usagef("--part: there is no index %d in %d parts: they are 0 to %d", index, count, count-1)
	}
	return index, count, nil
}

// evaluation returns what the answers depend on, but for the features, which the state may
// decide.
func (f *partialFlags) evaluation() (replay.Evaluation, error) {
	e := replay.Evaluation{Program: programVersion(), KeepSystemNodeBinding: *f.keep}
	var err error
	if e.State, err = digest(f.state.From...); err == nil && f.state.Authorization != "" {
		e.AuthorizationConfig, err = digest(f.state.Authorization)
	}
	return e, err
}

// programVersion returns the version with the revision that it was built from.
func programVersion() string {
	v := command.CurrentVersion()
	return strings.TrimSuffix(v.Version+" "+v.Revision, " ")
}

// digest returns the digest of the contents of files and folders.
func digest(paths ...string) (string, error) {
	sum := sha256.New()
	for _, root := range paths {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			return "", fmt.Errorf("read the state: %w", err)
		}
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if hidden := strings.HasPrefix(entry.Name(), ".") && path != root; hidden {
				if entry.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
			return digestFile(sum, path)
		})
		if err != nil {
			return "", fmt.Errorf("read the state: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// digestFile adds the content of a file, also of a file behind a link, but not of a folder.
func digestFile(to hash.Hash, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	content := sha256.New()
	if _, err := io.Copy(content, file); err != nil {
		return err
	}
	_, err = to.Write(content.Sum(nil))
	return err
}

// featuresText names the version of Kubernetes and the feature gates that are on.
func featuresText(features kubeversion.Features) string {
	text := features.Minor().String()
	for _, gate := range kubeversion.Gates() {
		if features.Enabled(gate) {
			text += " " + string(gate)
		}
	}
	return text
}

func auditPart(ctx context.Context, a *command.App, s *command.Session, files []auditlog.File, request partRequest, left []string) error {
	planned := &replay.Partial{Evaluation: request.evaluation, Share: request.share, Files: replay.PartialFiles(files)}
	if err := mayReplace(request.path, planned); err != nil {
		return err
	}
	part, err := replayLogs(ctx, a, s, files)
	if err != nil {
		return err
	}
	part.Report.LeftOut, part.Evaluation, part.Share = left, request.evaluation, request.share
	a.WarnLines(part.Read)
	if request.path == command.StdinName {
		return part.Write(a.Out)
	}
	if err := mayReplace(request.path, part); err != nil {
		return err
	}
	if request.share != nil {
		if err := os.MkdirAll(filepath.Dir(request.path), 0o777); err != nil {
			return fmt.Errorf("make the folder of --partial: %w", err)
		}
	}
	if err := command.WriteFile(request.path, part.Write); err != nil {
		return fmt.Errorf("write %s: %w", request.path, err)
	}
	var which string
	if s := part.Share; s != nil {
		which = fmt.Sprintf("part %d of %d: ", s.Index, s.Count)
	}
	a.PrintLine("", fmt.Sprintf("%s%s, %s, %s to %s; run audit merge on all parts", which,
		render.Count(part.Read.Files, "file"), render.Count(part.Read.Lines, "line"), render.Count(part.Read.Events, "event"),
		request.path))
	return nil
}

// mayReplace returns an error if a file is there that is not a report of the same part: it may be all that is
// known about other logs.
func mayReplace(path string, with *replay.Partial) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil // no file, or a pipe
	}
	old, err := readPartial(path)
	if err != nil {
		return fmt.Errorf("--partial does not overwrite %s: remove it, or name another file or folder: %w", path, err)
	}
	if differ := old.InputsDiffer(with); differ != "" {
		return fmt.Errorf("--partial does not overwrite %s, because it is another report: they differ in %s; "+
			"remove it, or name another file or folder", path, differ)
	}
	return nil
}

func newAuditMerge(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "merge REPORT...",
		Short: "Merge the partial reports of the parts of an audit log",
		Long: `Merges partial reports, as audit --partial writes them, to the report of the
whole log. The result equals the result of one run over all files, except that a request
whose stages are in two parts may count twice (totals.maybeTwice says for how many at
most).

A part that is missing or given twice, and parts with
another state, other options or another version of the program are errors. REPORT may be
a pattern such as 'reports/*.json'.

Exit status: 0 nothing would be refused and every kubelet conforms, 1 something is or
would be refused or a kubelet does not conform, 2 the reports cannot be merged, or the
log has something that gives 2 with audit.`,
		Example: `  node-authorizer audit merge 'reports/part-*.json'

  # Each control plane node reads its own log
  node-authorizer audit --from cluster.snapshot --partial $HOSTNAME.json /var/log/kubernetes/audit*.log*
  node-authorizer audit merge *.json -o json`,
		Args: command.AtLeastOne("REPORT is missing: name the partial reports of all parts, as audit --partial writes them"),
	}
	output := command.AddFormat(cmd, render.ForRows()...)
	output.RunE(func(_ *cobra.Command, args []string, format render.Format) error {
		paths, err := auditlog.Expand(args)
		if err != nil {
			return err
		}
		merger := replay.NewMerger()
		for _, path := range paths {
			part, err := readPartial(path)
			if err != nil {
				return err
			}
			if err := merger.Add(part); err != nil {
				return err
			}
		}
		report, read, err := merger.Report()
		if err != nil {
			return err
		}
		return writeAudit(a, report, read, format)
	})
	return cmd
}

func readPartial(path string) (*replay.Partial, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a partial report: %w", err)
	}
	text, err := filetext.New(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	part, err := replay.ReadPartial(text, path, programVersion())
	return part, errors.Join(err, text.Close())
}
