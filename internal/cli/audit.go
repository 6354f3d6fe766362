package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func newAudit(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit FILE...",
		Short: "Show which requests of an audit log Node authorization would refuse",
		Long: `Reads audit logs of kube-apiserver and puts every request of a kubelet to the Node
authorizer, RBAC and NodeRestriction, with the state of a cluster or of files
(--from). It says which requests were allowed and would be refused, which were
refused and why, which kubelets do not authenticate as a node, and which nodes
were never seen under their name.

Logs are lines of JSON of audit.k8s.io/v1 or v1beta1, compressed or not, and - is
stdin. The files that a log was rotated into may be named in any order, or by a
pattern such as 'audit*.log*'. They are read as a stream on all cores: memory does not
grow with the log.

With --partial it writes a partial report, and audit merge joins the reports of all parts:
a long log is divided between machines with --part, and the folder --partial, which is
made if there is none, has a file for each part. A file that is the report of other
logs, or was made with another state, is not overwritten.

Quarantines of the state refuse requests of their nodes and credentials, as if
kube-apiserver asked node-authorizer about them; a warning says so. With
--authorization-config they are left out.

Bindings of the ClusterRole system:node to the group system:nodes are left out, as
they will be when the move to Node authorization is done; with
--keep-system-node-binding they count. With --authorization-config the authorizers
of that file are asked, and its webhooks are called for every request of a kubelet. What
one that cannot be reached answered at the time is not known: such requests are undecided.

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
		Args: atLeastOne("FILE is missing: name the files of an audit log, or - for stdin"),
	}
	state := addState(a, cmd)
	state.addBehaviour(cmd)
	state.addAuthorization(cmd, "the Node authorizer, then RBAC")
	keep := cmd.Flags().Bool(
		"keep-system-node-binding", false, "do not ignore bindings of the ClusterRole system:node to the group system:nodes",
	)
	parts := addPartial(cmd, state, keep)
	output := addFormat(cmd, render.Table, render.Wide, render.JSON, render.YAML)
	cmd.AddCommand(newAuditMerge(a))
	output.runE(func(cmd *cobra.Command, args []string, format render.Format) error {
		if slices.Contains(args, auditlog.Stdin) && state.readsStdin() {
			return usagef("--from - and the audit log both want stdin: put one of them into a file")
		}
		files, leftOut, part, err := parts.choose(cmd, args)
		if err != nil {
			return err
		}
		for _, line := range leftOut {
			a.warn("%s", line)
		}
		s, err := state.load(cmd)
		if err != nil {
			return err
		}
		if part.path != "" {
			features, err := state.features(s.State)
			if err != nil {
				return err
			}
			part.evaluation.Features = featuresText(features)
		}
		left, err := a.prepareAudit(s, *keep)
		switch {
		case err != nil:
			return err
		case part.path != "":
			return a.auditPart(cmd.Context(), s, files, part, left)
		}
		return a.audit(cmd.Context(), s, files, left, format)
	})
	return cmd
}

// prepareAudit checks the state, and returns the bindings that it ignores.
func (a *app) prepareAudit(s *session, keep bool) ([]string, error) {
	if err := s.requireRBAC(); err != nil {
		return nil, err
	}
	a.warnMissing(s.allMissing(), requestsDepend)
	if s.configured == "" && len(s.State.Quarantines()) > 0 {
		a.warn("the Quarantines in %s refuse requests of the log too: this %s", s.State.Origin, assumption(chain.NameQuarantine))
	}
	if keep {
		return nil, nil
	}
	return replay.LeaveOutSystemNode(s.State.RBAC), nil
}

func (a *app) audit(ctx context.Context, s *session, files []auditlog.File, left []string, format render.Format) error {
	report, read, err := a.replayLogs(ctx, s, files)
	if err != nil {
		return err
	}
	report.LeftOut = left
	return a.writeAudit(report, read, format)
}

// writeAudit writes the report of a whole log and sets the exit status.
func (a *app) writeAudit(report *replay.Report, read auditlog.Summary, format render.Format) error {
	a.warnUnread(report, read)
	if err := a.write(report, format); err != nil {
		return err
	}
	switch {
	case !report.Complete():
		a.status = statusUndecided
	case !report.Clean():
		a.status = statusDenied
	default:
		a.unseen(report)
	}
	return nil
}

// unseen reports what the log does not show, if it shows no refusals: that is no answer about
// other requests.
func (a *app) unseen(report *replay.Report) {
	if n := report.Totals.NotExamined; n > 0 {
		a.failure("%s could not be examined by NodeRestriction (notExamined says why): "+
			"record them at level Request, as the audit policy of node-authorizer doctor --plan does", render.Count(n, "write"))
		a.status = statusUndecided
	}
	if n := len(report.Nodes.Silent); n > 0 {
		a.failure("the log does not mention %s (listed in nodes.silent): give the logs of all API servers, and of a longer time",
			render.Count(n, "node"))
		a.status = statusUndecided
	}
}

func (a *app) replayLogs(ctx context.Context, s *session, files []auditlog.File) (*replay.Report, auditlog.Summary, error) {
	progress := newProgress(a.streams)
	defer progress.done()
	return replay.Run(ctx, files, s.replayEvaluators(), auditlog.Options{Stdin: a.in, Progress: progress.lines()})
}

func (s *session) replayEvaluators() *replay.Evaluators {
	evaluators := &replay.Evaluators{Evaluator: s.Evaluator, Extra: s.configured != "" || len(s.State.Quarantines()) > 0}
	if len(s.State.Missing()) > 0 || !s.State.Complete() {
		evaluators.Missing = func(req *access.Request, result chain.Result) string { return s.missingForAudit(req, result) }
	}
	return evaluators
}

// missingForAudit describes the missing state that could have allowed a request. It does not
// include single objects and nodes that files lack: the report marks these refusals itself,
// because the log may be older than the files.
func (s *session) missingForAudit(req *access.Request, result chain.Result) string {
	code, asksRBAC := evaluate.Main(result).Code, s.asksRBAC(result)
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
func (a *app) warnUnread(report *replay.Report, read auditlog.Summary) {
	a.warnLines(read)
	switch {
	case report.OnlyReceived():
		a.failure("the log has requests but no responses: its audit policy omits the stage ResponseComplete")
	case report.Totals.Requests == 0:
		a.failure("the log has no request of a kubelet: " +
			"check whether the audit policy records them, as the policy of node-authorizer doctor --plan does")
	}
}
