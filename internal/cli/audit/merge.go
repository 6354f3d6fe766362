package audit

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/filetext"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

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
