package query

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

func NewSnapshot(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Save the state that the other commands need to a file",
		Long: `Saves the state that the other commands need to a file, for --from.

A snapshot has the names and relations of objects and the roles and bindings. The data
of secrets and config maps and environment values are never in it. Of secrets only the
metadata is requested.

Objects that may not be read are left out, and
the snapshot tells this to the commands that answer from it.

The file is one JSON object per line, compressed with zstd, with an index at its end.

Exit status: 0 saved whole, 2 not saved, or saved without what could not be read.`,
		Example: `  node-authorizer snapshot -o cluster.snapshot
  node-authorizer reach worker-1 --from cluster.snapshot

  # Look into it
  zstd -dc cluster.snapshot | head`,
	}
	state := command.AddState(a, cmd)
	state.Retain = true
	file := cmd.Flags().StringP("output", "o", "", "file to write, - for stdout")
	command.Must(cmd.MarkFlagFilename("output"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *file == "" {
			return command.Usagef("the output file is missing: add -o FILE, or -o - for stdout")
		}
		s, err := state.Load(cmd)
		if err != nil {
			return err
		}
		a.WarnMissing(s.AllMissing(), command.SnapshotDepends)
		if err := save(a, *file, s.State); err != nil {
			return err
		}
		fmt.Fprintln(a.ErrOut, snapshotSummary(s.State, *file))
		if gaps := snapshotGaps(s.State); gaps != "" {
			a.Failure("the snapshot is incomplete: %s", gaps)
			a.Status = command.StatusUndecided
		}
		return nil
	}
	return cmd
}

// save writes the complete snapshot or nothing.
func save(a *command.App, path string, state *source.State) error {
	write := func(w io.Writer) error { return source.WriteSnapshot(w, state) }
	var err error
	if path == "-" {
		err = write(a.Out)
	} else {
		err = command.WriteFile(path, write)
	}
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}

func snapshotGaps(state *source.State) string {
	if len(state.Counts()) == 0 {
		return "it has no objects; check which cluster or files it was taken from"
	}
	var unread []string
	for _, m := range state.Missing() {
		if m.ForInventory() {
			continue // the snapshot says so to attack-paths
		}
		unread = append(unread, m.Resource.String())
	}
	if len(unread) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%s could not be read, and answers that depend on them will be unknown; bind a role with the verb list on them to the user",
		strings.Join(unread, ", "),
	)
}

// snapshotSummary returns one line: "saved 3 nodes, 40 pods from cluster … to FILE".
func snapshotSummary(state *source.State, path string) string {
	counts := state.Counts()
	var parts []string
	for kind, n := range counts {
		parts = append(parts, render.Count(n, kind))
	}
	slices.Sort(parts)
	slices.SortStableFunc(parts, func(a, b string) int {
		_, kindA, _ := strings.Cut(a, " ")
		_, kindB, _ := strings.Cut(b, " ")
		return strings.Compare(kindA, kindB)
	})
	if len(parts) == 0 {
		parts = []string{"no objects"}
	}
	to := path
	if path == "-" {
		to = "stdout"
	}
	return fmt.Sprintf("saved %s from %s to %s", strings.Join(parts, ", "), state.Origin, to)
}
