package contain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

func newScopeSuggest(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "suggest --serviceaccount NAMESPACE/NAME",
		Short: "Suggest a NodeScope for a service account, from its roles and from audit logs",
		Long: `Writes a NodeScope for a service account, in mode Observe. The command reads the
rights that roles grant the account and, from audit logs, the requests of the account
from each node, and chooses for each resource and verb the tightest rules that fit what
is about the node of the token: objects with the node's name, lists that select the
node, pods on the node and objects of other groups that are named like them, what the
node itself may do. Each rule has a comment with the evidence. Rights of roles that the
log does not show are listed. Warnings name what the scope leaves open: see scope check.

A request of an attacker must not become a rule. So if some requests with a verb and a
resource are about a node, the own or another, those that are not about the own node are
outliers. A list and a watch count as one verb, a delete and a deletecollection too. So
are requests for which a right leads away from the node by a technique of attack paths,
such as creates of pods or reads of secrets, if no tight rule fits them. The scope
refuses outliers, and lists them with counts, times, objects and the nodes of their
tokens, for a person to decide. --accept-outliers writes rules in anywhere for all of
them. Where no other request shows a node, as with lists of everything, there is a rule
in anywhere too. The rule's comment says that it is not about the own node.

The node of a request is the node of its token: Kubernetes 1.30 and later log it for
tokens that are bound to a pod. Requests of other tokens are counted and named; an
enforced scope refuses them. Without --audit there is only what roles grant: writes of
nodes, pods and CiliumEndpoints are limited to the node, and everything else is allowed
anywhere.

Pods count as being on a node if the state or the log shows it. A log should have
at least one rollout of the agent, and the time of its rarest task.

Exit status: 0 written, 1 written, and the log has outliers, 2 the service account does
not exist, neither the state nor the logs show whether it does, the logs have no request
of it, something of the logs or of the roles could not be read, or bad usage.`,
		Example: `  node-authorizer scope suggest --serviceaccount kube-system/cilium --audit '/var/log/kubernetes/audit*.log*'

  # From files only
  node-authorizer scope suggest --serviceaccount kube-system/cilium --from cluster.snapshot --audit audit.log > cilium.yaml

  # Who asked for what about other nodes
  node-authorizer scope suggest --serviceaccount kube-system/cilium --audit audit.log -o json | jq -c '.outliers[]'

  # The rights that were never used
  node-authorizer scope suggest --serviceaccount kube-system/cilium --audit audit.log -o json | jq '.neverUsed'`,
	}
	state := command.AddState(a, cmd)
	state.AddBehaviour(cmd)
	account := cmd.Flags().String("serviceaccount", "", "the service account, as NAMESPACE/NAME")
	command.Must(cmd.RegisterFlagCompletionFunc("serviceaccount",
		func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			return accountNames(state, cmd, args, text)
		}))
	logs := addAuditLogs(cmd)
	accept := cmd.Flags().Bool("accept-outliers", false,
		"write rules in anywhere for requests that are not about the node of their token; requires --audit")
	output := command.AddFormat(cmd, manifestFormat, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if *accept && len(logs.paths) == 0 {
			return command.Usagef("--accept-outliers has no effect without --audit: only a log has outliers")
		}
		namespace, name, ok := strings.Cut(*account, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return command.Usagef("--serviceaccount %q: want NAMESPACE/NAME, such as kube-system/cilium", *account)
		}
		files, err := logs.choose(a, state)
		if err != nil {
			return err
		}
		s, err := state.Load(cmd)
		if err != nil {
			return err
		}
		suggestion, err := suggestScope(a, cmd, s, namespace, name, files, *accept)
		if err != nil {
			return err
		}
		if format == manifestFormat {
			_, err := io.WriteString(a.Out, suggestion.Manifest())
			return err
		}
		return a.Write(suggestion, format)
	})
	return cmd
}

// accountNames completes to NAMESPACE/NAME of service accounts.
func accountNames(f *command.StateFlags, cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	begin := command.AccountUser + strings.Replace(text, "/", ":", 1)
	users, directive := f.UserNames(cmd, args, begin)
	var names []string
	for _, user := range users {
		if rest, ok := strings.CutPrefix(user, command.AccountUser); ok {
			names = append(names, strings.Replace(rest, ":", "/", 1))
		}
	}
	return names, directive
}

type auditLogFlag struct{ paths []string }

func addAuditLogs(cmd *cobra.Command) *auditLogFlag {
	f := &auditLogFlag{}
	cmd.Flags().StringArrayVar(&f.paths, "audit", nil, "a file of an audit log, or a pattern of files, or - for stdin; can be repeated")
	command.Must(cmd.MarkFlagFilename("audit"))
	return f
}

func (f *auditLogFlag) choose(a *command.App, state *command.StateFlags) ([]auditlog.File, error) {
	if len(f.paths) == 0 {
		return nil, nil
	}
	if slices.Contains(f.paths, auditlog.Stdin) && state.ReadsStdin() {
		return nil, command.Usagef("--from - and --audit - both want stdin: put one of them into a file")
	}
	paths, err := auditlog.Expand(f.paths)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	files, leftOut, err := auditlog.Files(paths)
	if err != nil {
		return nil, err
	}
	for _, line := range leftOut {
		a.Warn("%s", line)
	}
	return files, nil
}

func suggestScope(
	a *command.App, cmd *cobra.Command, s *command.Session, namespace, name string, files []auditlog.File, acceptOutliers bool,
) (*learn.Suggestion, error) {
	if err := s.RequireRBAC(); err != nil {
		return nil, err
	}
	user := nodeidentity.ServiceAccountUser(namespace, name)
	grants, unresolved := s.State.RBAC.Grants(user, command.WithImpliedGroups(user, nil))
	if unresolved != nil {
		a.Failure("not all roles of the account could be read, and the suggestion lacks their rights: %v", unresolved)
		a.Status = command.StatusUndecided
	}
	if len(files) == 0 {
		a.Warn("no audit log was given: the suggestion is a guess from what roles grant")
		guessed := learn.FromRoles(namespace, name, grants)
		reportAccount(a, s, guessed, namespace, name)
		reportInvalid(a, guessed)
		return guessed, nil
	}
	collector := learn.NewCollector(learn.InState(s.Evaluator), grants)
	log := &learn.Log{
		Concerns: func(ns, n string) bool { return ns == namespace && n == name },
		Request:  collector.Request, Pod: collector.Pod,
	}
	if err := readAccounts(a, cmd, log, files); err != nil {
		return nil, err
	}
	suggestion := collector.Suggest(namespace, name, acceptOutliers)
	reportAccount(a, s, suggestion, namespace, name)
	reportSuggestion(a, suggestion, user)
	return suggestion, nil
}

func readAccounts(a *command.App, cmd *cobra.Command, log *learn.Log, files []auditlog.File) error {
	progress := command.NewProgress(a.Streams)
	read, err := log.Read(cmd.Context(), files, auditlog.Options{Stdin: a.In, Progress: progress.Lines()})
	progress.Done()
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	a.WarnLines(read)
	if len(read.Broken) > 0 {
		a.Status = command.StatusUndecided
	}
	return nil
}

func reportInvalid(a *command.App, s *learn.Suggestion) {
	for _, why := range s.Invalid {
		a.Failure("the suggested NodeScope is not valid: %s", why)
		a.Status = command.StatusUndecided
	}
}

func reportSuggestion(a *command.App, s *learn.Suggestion, user string) {
	reportInvalid(a, s)
	switch {
	case s.Requests == 0:
		a.Failure("the logs have no request of %s: check whether the audit policy records them, and give a longer log", user)
		a.Status = command.StatusUndecided
	case s.Nodes+s.AsItsNode == 0:
		a.Failure("no token of %s names its node in the logs: they are tokens without a pod, or the API server is older than 1.30", user)
		a.Status = command.StatusUndecided
	case s.WithoutNode.Count > 0:
		a.Warn("%s with tokens that name no node; enforced, the scope refuses these", render.Count(s.WithoutNode.Count, "request"))
	}
	if n := s.OutlierRequests(); n > 0 {
		a.Warn("%s not about the node of the token: the scope refuses and lists such outliers; find out who sent them, "+
			"or let all of them pass with --accept-outliers", render.Count(n, "request"))
		a.Status = max(a.Status, command.StatusDenied)
	}
}

// reportAccount says in a suggestion whether the account exists. Roles can be bound to a name that no service
// account has, so without this a misspelt name would look like an account without rights.
func reportAccount(a *command.App, s *command.Session, suggestion *learn.Suggestion, namespace, name string) {
	exists, why := accountExists(s, namespace, name)
	suggestion.AccountExists = exists
	if exists == learn.Yes {
		return
	}
	suggestion.Notes = append([]string{why}, suggestion.Notes...)
	if exists == learn.Unknown && suggestion.Requests > 0 {
		a.Warn("%s; it did when the logs were written", why) // so the name is right, and no rule depends on it
		return
	}
	a.Failure("%s", why)
	a.Status = command.StatusUndecided
}

// accountExists reports whether the state has a service account, and if not, what to do about it.
func accountExists(s *command.Session, namespace, name string) (exists learn.Existence, why string) {
	if _, ok := s.State.ServiceAccount(namespace, name); ok {
		return learn.Yes, ""
	}
	account := namespace + "/" + name
	unknown := fmt.Sprintf("it is unknown whether service account %s exists: ", account)
	for _, m := range s.State.Missing() {
		if m.Kind == source.ServiceAccounts {
			return learn.Unknown, unknown + command.NewMissing(m).Line()
		}
	}
	known := s.State.ServiceAccountNames()
	if len(known) == 0 && !s.State.Complete() {
		return learn.Unknown, unknown + "there are no service accounts in " + s.State.Origin + ": add what " +
			"kubectl get serviceaccounts -A -o yaml prints with --from, or use a snapshot"
	}
	var names, elsewhere []string
	for _, n := range known {
		names = append(names, n.Namespace+"/"+n.Name)
		if n.Name == name {
			elsewhere = append(elsewhere, n.Namespace+"/"+n.Name)
		}
	}
	hint := command.DidYouMean(account, names)
	if len(elsewhere) == 1 {
		hint = "; did you mean " + elsewhere[0] + "?"
	}
	if hint == "" {
		hint = ": check the namespace and the name"
	}
	return learn.No, fmt.Sprintf("service account %s does not exist in %s (%s)%s",
		account, s.State.Origin, render.Count(len(known), "service account"), hint)
}
