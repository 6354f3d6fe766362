// Package audit has the command audit, which evaluates the requests of audit logs.
package audit

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func NewAudit(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit FILE...",
		Short: "Show which requests of an audit log Node authorization would refuse",
		Long: `Reads audit logs of kube-apiserver and puts every request of a kubelet to the Node
authorizer, RBAC and NodeRestriction, with the state of a cluster or of files
(--from). The report says which requests were allowed and would be refused, which were
refused and why, which kubelets do not authenticate as a node, and which nodes
were never seen under their name.

Logs are lines of JSON of audit.k8s.io/v1 or v1beta1, compressed or not, and - is
stdin. The files that a log was rotated into may be named in any order, or by a
pattern such as 'audit*.log*'. Files are read as a stream on all cores: memory does not
grow with the log.

With --partial it writes a partial report, and audit merge joins the reports of all
parts: a long log is divided between machines with --part, and the folder --partial,
which is made if there is none, has a file for each part. A file that is the report of
other logs, or was made with another state, is not overwritten.

Quarantines of the state refuse requests of their nodes and credentials, as if
kube-apiserver asked node-authorizer about them; a warning says so. With
--authorization-config they are left out.

Bindings of the ClusterRole system:node to the group system:nodes are left out, as they
will be when the move to Node authorization is done; with --keep-system-node-binding
they count. With --authorization-config the authorizers of that file are asked, and its
webhooks are called for every request of a kubelet. The earlier answer of a webhook that
cannot be reached is unknown: such requests are undecided.

Exit status: 0 nothing would be refused and every kubelet conforms, 1 something is
or would be refused or a kubelet does not conform, 2 a line could not be read, a
request could not be decided, or there was none of a kubelet. Where nothing would be
refused it is 2 as well if a write could not be examined, or the log has nothing of a
node.`,
		Example: `  node-authorizer audit /var/log/kubernetes/audit*.log*

  # With the state of another time or place
  node-authorizer audit --from cluster.snapshot audit.log

  # The first of 12 parts of a long log
  node-authorizer audit --from cluster.snapshot --partial reports --part 0/12 '/logs/audit*.log*'

  # How often which node would be refused what
  node-authorizer audit audit.log -o json | jq -r '.wouldBeRefused[] | [.node, .resource, .code, .count] | @tsv'`,
		Args: command.AtLeastOne("FILE is missing: name the files of an audit log, or - for stdin"),
	}
	state := command.AddState(a, cmd)
	state.AddBehaviour(cmd)
	state.AddAuthorization(cmd, "the Node authorizer, then RBAC")
	keep := cmd.Flags().Bool(
		"keep-system-node-binding", false, "do not ignore bindings of the ClusterRole system:node to the group system:nodes",
	)
	parts := addPartial(cmd, state, keep)
	output := command.AddFormat(cmd, render.ForRows()...)
	cmd.AddCommand(newAuditMerge(a))
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		if slices.Contains(args, auditlog.Stdin) && state.ReadsStdin() {
			return command.Usagef("--from - and the audit log both want stdin: put one of them into a file")
		}
		files, leftOut, part, err := parts.choose(cmd, args)
		if err != nil {
			return err
		}
		for _, line := range leftOut {
			a.Warn("%s", line)
		}
		s, err := state.Load(cmd)
		if err != nil {
			return err
		}
		if part.path != "" {
			features, err := state.Features(s.State)
			if err != nil {
				return err
			}
			part.evaluation.Features = featuresText(features)
		}
		left, err := prepareAudit(a, s, *keep)
		switch {
		case err != nil:
			return err
		case part.path != "":
			return auditPart(cmd.Context(), a, s, files, part, left)
		}
		return audit(cmd.Context(), a, s, files, left, format)
	})
	return cmd
}

// prepareAudit checks the state, and returns the bindings that it ignores.
func prepareAudit(a *command.App, s *command.Session, keep bool) ([]string, error) {
	if err := s.RequireRBAC(); err != nil {
		return nil, err
	}
	a.WarnMissing(s.AllMissing(), command.RequestsDepend)
	if s.Configured == "" && len(s.State.Quarantines()) > 0 {
		a.Warn("the Quarantines in %s refuse requests of the log too: this %s", s.State.Origin, command.Assumption(chain.NameQuarantine))
	}
	if keep {
		return nil, nil
	}
	return replay.LeaveOutSystemNode(s.State.RBAC), nil
}

func audit(ctx context.Context, a *command.App, s *command.Session, files []auditlog.File, left []string, format render.Format) error {
	whole, err := replayLogs(ctx, a, s, files)
	if err != nil {
		return err
	}
	whole.Report.LeftOut = left
	return writeAudit(a, &whole.Report, whole.Read, format)
}

// writeAudit writes the report of a whole log and sets the exit status.
func writeAudit(a *command.App, report *replay.Report, read auditlog.Summary, format render.Format) error {
	warnUnread(a, report, read)
	if err := a.Write(report, format); err != nil {
		return err
	}
	switch {
	case !report.Complete():
		a.Status = command.StatusUndecided
	case !report.Clean():
		a.Status = command.StatusDenied
	default:
		unseen(a, report)
	}
	return nil
}

// unseen reports what the log does not show, if it shows no refusals: that is no answer about
// other requests.
func unseen(a *command.App, report *replay.Report) {
	if n := report.Totals.NotExamined; n > 0 {
		a.Failure("%s could not be examined by NodeRestriction (notExamined says why): "+
			"record them at level Request, as the audit policy of node-authorizer doctor --plan does", render.Count(n, "write"))
		a.Status = command.StatusUndecided
	}
	if n := len(report.Nodes.Silent); n > 0 {
		a.Failure("the log does not mention %s (listed in nodes.silent): give the logs of all API servers, and of a longer time",
			render.Count(n, "node"))
		a.Status = command.StatusUndecided
	}
}

func replayLogs(ctx context.Context, a *command.App, s *command.Session, files []auditlog.File) (*replay.Partial, error) {
	progress := command.NewProgress(a.Streams)
	defer progress.Done()
	evaluators := &replay.Evaluators{Evaluator: s.Evaluator, Extra: s.Configured != "" || len(s.State.Quarantines()) > 0}
	if len(s.State.Missing()) > 0 || !s.State.Complete() {
		evaluators.Missing = func(req *access.Request, result chain.Result) string { return missingForAudit(s, req, result) }
	}
	return replay.Run(ctx, files, evaluators, auditlog.Options{Stdin: a.In, Progress: progress.Lines()})
}

// missingForAudit describes the missing state that could have allowed a request. It does not
// include single objects and nodes that files lack: the report marks these refusals itself,
// because the log may be older than the files.
func missingForAudit(s *command.Session, req *access.Request, result chain.Result) string {
	code, asksRBAC := evaluate.Main(result).Code, s.AsksRBAC(result)
	if unread := s.Unread(req, code, asksRBAC); len(unread) > 0 {
		return (&evaluate.UnreadError{Resources: unread}).Error()
	}
	kind, ok := nodeauthz.KindOf(req.Group, req.Resource)
	if !s.State.KnowsNode(nodeidentity.Of(req.User, req.Groups).Name) || ok && source.NamesItsNode(kind) {
		code = ""
	}
	if lacks := s.Lacking(req, code, asksRBAC); len(lacks) > 0 {
		return (&evaluate.LackError{Lacks: lacks}).Error()
	}
	return ""
}

// warnUnread reports on stderr which parts of the log are not in the report.
func warnUnread(a *command.App, report *replay.Report, read auditlog.Summary) {
	a.WarnLines(read)
	switch {
	case report.OnlyReceived():
		a.Failure("the log has requests but no responses: its audit policy omits the stage ResponseComplete")
	case report.Totals.Requests == 0:
		a.Failure("the log has no request of a kubelet: " +
			"check whether the audit policy records them, as the policy of node-authorizer doctor --plan does")
	}
}
