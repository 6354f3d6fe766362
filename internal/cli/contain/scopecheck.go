package contain

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

func newScopeCheck(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check -f FILE --audit FILE",
		Short: "Show which requests of an audit log NodeScopes would have refused",
		Long: `Puts the requests of audit logs to the NodeScopes of manifests and says which they
would have refused, in any mode: by account, rule and code, with a count and
an example. The NodeScopes are read from -f, else from the state of --from.

The pods of each node come from the state (--from) and from the log itself: the
pods whose tokens are used, those whose status their node wrote, and those that were
bound. Without --from much may be undecided. A request that would be refused only
because neither shows its pod, or what needs its object, is undecided. So is a write
that only asNode lets pass and whose object NodeRestriction would have to see, and a
create or list of custom resources if the state does not have their APIService, which
says whether another API server serves them: there it would be refused.

Requests that were refused at the time are counted, and not decided. Warnings name what
the scopes leave open, independently of the log: rights with which attack paths leave
the node, such as to create pods, tokens or bindings, rights to change NodeScopes and
Quarantines, and otherwise: Allow. If the state has roles, those are left out that roles
grant to no account of the scope. Warnings do not change the exit status.

Exit status: 0 nothing would have been refused, 1 something would have been, 2 a
request is undecided, the logs have none of the accounts, or a line could not be read.`,
		Example: `  node-authorizer scope check -f scopes/ --audit '/var/log/kubernetes/audit*.log*' --from cluster.snapshot

  # What would be refused how often
  node-authorizer scope check -f cilium.yaml --audit audit.log -o json | jq -r '.accounts[].findings[] | [.count, .code, .request] | @tsv'`,
	}
	state := &command.StateFlags{App: a, Connection: &command.Connection{}}
	cmd.Flags().StringArrayVar(&state.From, "from", nil,
		"read the state from a file or folder of manifests, a snapshot, or - for stdin; can be repeated")
	command.Must(cmd.MarkFlagFilename("from"))
	scopes := addScopeFiles(cmd, state)
	state.AddBehaviour(cmd)
	logs := addAuditLogs(cmd)
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML, render.Name, render.CSV)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if err := state.Check(cmd); err != nil {
			return err
		}
		if len(scopes.files)+len(state.From) == 0 {
			return command.Usagef("-f is missing: name manifests of NodeScopes, or - for stdin")
		}
		if slices.Contains(scopes.files, command.StdinName) && (slices.Contains(logs.paths, command.StdinName) || state.ReadsStdin()) {
			return command.Usagef("standard input (-) is given twice, but can be read only once")
		}
		files, err := logs.choose(a, state)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return command.Usagef("--audit is missing: name the files of an audit log, or - for stdin")
		}
		return checkScopes(a, cmd, scopes, files, format)
	})
	return cmd
}

func checkScopes(a *command.App, cmd *cobra.Command, f *scopeFlags, files []auditlog.File, format render.Format) error {
	scopes, err := f.read(cmd.Context())
	if err != nil {
		return err
	}
	evaluator, err := withoutCluster(f.state, cmd)
	if err != nil {
		return err
	}
	if len(f.files) == 0 {
		if scopes, err = scopesOf(evaluator.State); err != nil {
			return err
		}
	}
	checker, err := learn.NewChecker(evaluator, scopes)
	if err != nil {
		return err
	}
	log := &learn.Log{Concerns: checker.Concerns, Request: checker.Request, Pod: checker.Pod}
	if err := readAccounts(a, cmd, log, files); err != nil {
		return err
	}
	report := checker.Report()
	if err := a.Write(report, format); err != nil {
		return err
	}
	if report.Requests == 0 {
		a.Failure("the logs have no request of the accounts of the scopes: check whether the audit policy records them")
	}
	if report.Undecided > 0 && len(f.state.From) == 0 {
		a.Warn("only the log shows what runs on which node: give the objects of the cluster with --from, best a snapshot")
	}
	switch {
	case a.Status == command.StatusUndecided || !report.Complete():
		a.Status = command.StatusUndecided
	case report.WouldBeRefused > 0:
		a.Status = command.StatusDenied
	}
	return nil
}

// withoutCluster makes the evaluator of the files of --from, and of an empty state without these.
func withoutCluster(f *command.StateFlags, cmd *cobra.Command) (*evaluate.Evaluator, error) {
	if len(f.From) > 0 {
		s, err := f.Load(cmd)
		if err != nil {
			return nil, err
		}
		return s.Evaluator, nil
	}
	empty := strings.NewReader("{apiVersion: v1, kind: List, items: []}")
	state, err := source.LoadFiles(cmd.Context(), []string{command.StdinName}, source.FileOptions{Stdin: empty})
	if err != nil {
		return nil, err
	}
	features, err := f.Features(state)
	if err != nil {
		return nil, err
	}
	return evaluate.New(cmd.Context(), state, evaluate.Options{Features: features})
}
