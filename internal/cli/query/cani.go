// Package query has the commands that answer questions about a state: can-i, explain, who-can, reach and review, and
// snapshot, which saves a state.
package query

import (
	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// CanIResult is the answer in one line.
type CanIResult struct{ answer }

func (r CanIResult) Text(p *render.Page) { p.Line("%s", r.line()) }

func NewCanI(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "can-i {VERB TYPE[/NAME] | --list} --node NODE",
		Short: "Check whether a node may do something, with the reason in one line",
		Long: `Says whether a node, or with --as any user, may do something.

TYPE is a resource as kubectl accepts it: pods, po, deployments.apps.
TYPE/NAMESPACE/NAME names the namespace too, instead of -n. Instead of TYPE/NAME, a URL
that begins with a slash can be asked about.

The Node authorizer is asked first, then RBAC; with --authorization-config, the
authorizers of that file, whose webhooks are called. NodeRestriction then decides about
a node's write, as far as the name and the pod decide it without the object. The answer
is "yes, if …" where the rest depends on the object; the JSON form lists the conditions,
and explain decides with the object. Asked without a name, it is "yes, of the name …"
where only the node's own name passes.

If the state has NodeScopes or Quarantines, they are asked before all others, as if
kube-apiserver asked node-authorizer about them; an answer that rests on this says so.
NodeScopes and Quarantines decide about a service account by the node of its token: name
it with --token-node, or a pod with --pod. With --authorization-config they are left
out, because the webhooks of that file answer. If they may exist and cannot be read, a
yes about a service account or a node is unknown.

With --list it prints the rules for the node or user instead: the rules of the Node
authorizer, as far as NodeRestriction lets them pass, and the rules of RBAC. The list
counts the objects that are related to the node; reach lists them, with the paths. Below
the rules it prints what the NodeScopes of a service account let pass.

Files may lack what the answer depends on: the volume of a claim, roles and bindings.
The answer is then unknown, and names it. A snapshot holds everything.

Exit status: 0 yes, also with conditions, 1 no, 2 could not decide.`,
		Example: `  # May worker-1 read this secret?
  node-authorizer can-i get secrets/db -n shop --node worker-1

  # The same from files: a snapshot, or what kubectl prints
  node-authorizer snapshot -o cluster.snapshot
  node-authorizer can-i get secrets/db -n shop --node worker-1 --from cluster.snapshot
  kubectl get -A -o yaml \
    nodes,pods,pvc,pv,volumeattachments,serviceaccounts,csidrivers,clusterroles,clusterrolebindings,roles,rolebindings |
    node-authorizer can-i get secrets/db -n shop --node worker-1 --from -

  # May it mint tokens for a service account?
  node-authorizer can-i create serviceaccounts/api --subresource token -n shop --node worker-1

  # May the token of this pod read the secret?
  node-authorizer can-i get secrets/db -n shop --pod kube-system/agent-x7k2p

  # What may it do?
  node-authorizer can-i --list --node worker-1

  # May it watch its pods?
  node-authorizer can-i watch pods -A --field-selector spec.nodeName=worker-1 --node worker-1`,
	}
	list := cmd.Flags().Bool("list", false, "list what the node or user may do, in all namespaces or the one of -n")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *list {
			return listArgs(cmd, args)
		}
		return command.QuestionArgs(cmd, args)
	}
	ask := addAsk(a, cmd)
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML, render.CSV)
	quiet := cmd.Flags().BoolP("quiet", "q", false, "print nothing on stdout, only set the exit status")
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		if *list {
			return listRules(a, cmd, ask, format)
		}
		s, who, q, err := ask.load(cmd, args)
		if err != nil {
			return err
		}
		result, err := decide(cmd.Context(), s, who, q, command.WrittenObjects{})
		if err != nil {
			return err
		}
		a.WarnMissing(result.Missing, command.AnswerDepends)
		a.Status = result.status()
		if *quiet {
			return nil
		}
		return a.Write(CanIResult{result.answer}, format)
	})
	command.AddClusters(a, cmd, ask.state.Connection, "list")
	return cmd
}

type askFlags struct {
	app      *command.App
	state    *command.StateFlags
	question *command.QuestionFlags
	identity *command.IdentityFlags
}

func addAsk(a *command.App, cmd *cobra.Command) *askFlags {
	f := &askFlags{app: a, identity: command.AddIdentity(cmd), question: command.AddQuestion(cmd)}
	f.state = command.AddState(a, cmd)
	f.state.Parts = true
	f.state.CompleteAsked(cmd)
	command.Must(cmd.RegisterFlagCompletionFunc("node", f.state.NodeNames))
	command.Must(cmd.RegisterFlagCompletionFunc("token-node", f.state.NodeNames))
	command.Must(cmd.RegisterFlagCompletionFunc("pod", cobra.NoFileCompletions))
	command.Must(cmd.RegisterFlagCompletionFunc("as", f.state.UserNames))
	command.Must(cmd.RegisterFlagCompletionFunc("as-group", f.state.GroupNames))
	f.state.AddBehaviour(cmd)
	f.state.AddChanges(cmd)
	f.state.AddAuthorization(cmd, "the Node authorizer, then RBAC")
	f.state.AddNamespace(cmd, "namespace of the object (default: the kubeconfig's, else \"default\")")
	return f
}

func (f *askFlags) load(cmd *cobra.Command, args []string) (*command.Session, command.Identity, command.Question, error) {
	if err := f.identity.Check(); err != nil {
		return nil, command.Identity{}, command.Question{}, err
	}
	if _, err := f.question.ParseSelector(); err != nil {
		return nil, command.Identity{}, command.Question{}, err
	}
	s, err := f.state.Load(cmd)
	if err != nil {
		return nil, command.Identity{}, command.Question{}, err
	}
	q, err := s.Question(f.app, args, f.question, f.state.Namespace)
	if err != nil {
		return nil, command.Identity{}, command.Question{}, err
	}
	who, err := s.Identity(f.identity)
	return s, who, q, err
}

func (CanIResult) DocumentKind() string { return "Answer" }
