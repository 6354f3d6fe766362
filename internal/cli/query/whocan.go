package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// WhoCanResult lists the nodes that can do something.
type WhoCanResult struct {
	// Request is the request that is asked about.
	Request command.Question `json:"request"`
	// NamespaceAssumed is true if the user did not give a namespace: the answer is about
	// the namespace of the kubeconfig, or "default".
	NamespaceAssumed bool `json:"namespaceAssumed,omitempty"`
	// Nodes are the nodes that can, sorted by name.
	Nodes []nodeThatCan `json:"nodes"`
	// Conditions are the requirements of NodeRestriction for the objects that these nodes write.
	// With ownName, each may write only objects with its own name.
	Conditions []noderestriction.Condition `json:"conditions,omitempty"`
	// Some are, for a question without a name, nodes that can do it only to some objects,
	// by name.
	Some []nodeThatCanSome `json:"some,omitempty"`
	// SomeUndecided are, for such a question, nodes for which the objects are unknown
	// because of Missing.
	SomeUndecided []string `json:"someUndecided,omitempty"`
	// Undecided are the nodes for which the answer is unknown because of Missing.
	Undecided []string `json:"undecided,omitempty"`
	// NodesAsked is the number of nodes in the state.
	NodesAsked int `json:"nodesAsked"`
	// Quarantined is the number of nodes that a Quarantine refuses, and Notes are what this assumes of
	// kube-apiserver.
	Quarantined int      `json:"quarantined,omitempty"`
	Notes       []string `json:"notes,omitempty"`
	// NodeScopes is the number of NodeScopes of the state. Their service accounts are not listed.
	NodeScopes int `json:"nodeScopes,omitempty"`
	// Why is the reason, if no node can and the reason is the same for all.
	Why *verdict.Reason `json:"why,omitempty"`
	// Missing is the missing state, because of which nodes may be missing.
	Missing []command.Missing `json:"missing,omitempty"`
	// State is the cluster state that was asked.
	State command.StateInfo `json:"state"`
}

// nodeThatCan is a node that can do it.
type nodeThatCan struct {
	// Node is the name of the node, and DecidedBy the authorizer that allows it.
	Node      string `json:"node"`
	DecidedBy string `json:"decidedBy"`
	// OnlyName is set, for a question without a name, if the node can do it only to
	// objects of this name.
	OnlyName string `json:"onlyName,omitempty"`
	// Paths are all paths through which it can; empty if it needs no path.
	Paths []verdict.Path `json:"paths,omitempty"`
	// Message is the reason, for nodes that need no path.
	Message string `json:"message,omitempty"`
}

// nodeThatCanSome is a node that can do it only to the objects that are related to it.
type nodeThatCanSome struct {
	// Node is the name of the node, and Objects are the objects to which it can do it.
	Node    string           `json:"node"`
	Objects []verdict.Object `json:"objects"`
}

func NewWhoCan(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-can VERB TYPE/NAME",
		Short: "List the nodes that may do it, and through which pods",
		Long: `Lists the nodes that may do something, with the pods through which they may.

The arguments are the same as for can-i, and a node is listed if can-i answers yes for
it. Without a name, the question is about every object of the type: nodes that may do it
to some objects only, by name, are listed apart. A node that may write only what has its
own name, such as its Node, is listed, and the answer says so. Missing objects of files
make nodes undecided, and are named. A quarantined node is not listed, unless its
Quarantine excepts the request; this assumes that kube-apiserver asks node-authorizer
about Quarantines.

Service accounts are not listed, also not those that NodeScopes hold to their node: ask
can-i about one, with --pod or --token-node.

Without -n the question is about one namespace only, and the answer says which; -A asks
about all of them.

Exit status: 0 some node may, 1 none, 2 could not decide.`,
		Example: `  # Which nodes can read this secret?
  node-authorizer who-can get secrets/db -n shop

  # Which nodes can mint tokens for this service account?
  node-authorizer who-can create serviceaccounts/api --subresource token -n shop`,
		Args: command.QuestionArgs,
	}
	state, flags := command.AddState(a, cmd), command.AddQuestion(cmd)
	state.PartsOfFiles = true
	state.CompleteAsked(cmd)
	state.AddBehaviour(cmd)
	state.AddChanges(cmd)
	state.AddNamespace(cmd, "namespace of the object (default: the kubeconfig's, else \"default\")")
	output := command.AddFormat(cmd, render.ForRows(render.Dot)...)
	output.RunE(func(cmd *cobra.Command, args []string, format render.Format) error {
		if _, err := flags.ParseSelector(); err != nil {
			return err
		}
		s, err := state.Load(cmd)
		if err != nil {
			return err
		}
		q, err := s.Question(a, args, flags, state.Namespace)
		if err != nil {
			return err
		}
		result, err := whoCan(cmd.Context(), s, q)
		if err != nil {
			return err
		}
		if result.NamespaceAssumed = namespaceAssumed(q, args, state) && !flags.AllNamespaces; result.NamespaceAssumed {
			a.Warn("%s", result.namespaceText())
		}
		a.WarnMissing(result.Missing, command.MoreNodes)
		a.Status = result.status()
		return a.Write(result, format)
	})
	command.AddClusters(a, cmd, state.Connection)
	return cmd
}

// namespaceAssumed reports whether neither -n nor TYPE/NAMESPACE/NAME names the namespace of a question.
func namespaceAssumed(q command.Question, args []string, state *command.StateFlags) bool {
	return q.Namespaced && state.Namespace == "" && !strings.HasSuffix(strings.Join(args, "/"), "/"+q.Namespace+"/"+q.Name)
}

func (WhoCanResult) DocumentKind() string { return "WhoCan" }

// whoCanRows is the maximum number of rows of the table; wide shows all.
const whoCanRows = 50

func (r WhoCanResult) Text(p *render.Page) {
	p.Line("%s of %s can %s%s", r.count(), render.Count(r.NodesAsked, "node"), r.what(), r.conditionsText())
	for _, c := range conditionsExceptName(r.Conditions) {
		p.Line("  %s", c.Requires)
	}
	if r.NamespaceAssumed {
		p.Line("  %s", render.Unsure.In(r.namespaceText()))
	}
	if r.Why != nil {
		p.Line("  %s", r.Why.Message)
	}
	if r.Quarantined > 0 && len(r.Nodes) > 0 {
		p.Line("  refused because of Quarantines: %s; this %s", render.Count(r.Quarantined, "node"), strings.Join(r.Notes, ", "))
	}
	if r.NodeScopes > 0 {
		p.Line("  service accounts are not listed: ask can-i --pod about the accounts of %s", render.Count(r.NodeScopes, "NodeScope"))
	}
	if n := len(r.Undecided); n > 0 {
		p.Line("%s about %s: %s", render.Unsure.In("could not decide"), render.Count(n, "node"), command.Some(r.Undecided, p.Wide()))
	}
	r.someText(p)
	if len(r.Nodes) == 0 {
		return
	}
	p.Line("")
	more := render.TableOf(p, 0, whoCanRows, []string{"NODE", "BY", "THROUGH"}, r.Nodes, func(n nodeThatCan) []string {
		return []string{n.Node, n.DecidedBy, n.through(p.Wide())}
	})
	if more > 0 {
		p.Line("… and %s more (use -o wide or -o json)", render.Thousands(more))
	}
}

// count returns how many nodes can. With undecided nodes it is a range.
func (r WhoCanResult) count() string {
	n := render.Thousands(len(r.Nodes))
	switch {
	case len(r.Nodes) > 0 && len(r.Undecided) > 0:
		return render.Unsure.In("at least " + n)
	case len(r.Nodes) > 0:
		return render.Strong.In(n) // a right is no danger by itself
	case len(r.Undecided) > 0:
		return render.Unsure.In(fmt.Sprintf("unknown: between 0 and %s", render.Thousands(len(r.Undecided))))
	}
	return render.Strong.In("none")
}

// through returns the names of the pods, or other objects on the node, in the paths: the first
// three, or all.
func (n nodeThatCan) through(all bool) string {
	var holders []string
	for _, path := range n.Paths {
		last := path[len(path)-1].From.String()
		if !slices.Contains(holders, last) {
			holders = append(holders, last)
		}
	}
	if len(holders) == 0 {
		return n.Message
	}
	return command.Some(holders, all)
}

// what returns the question as text. If some nodes can do it to some objects, it says that a
// question without a name is about every object.
func (r WhoCanResult) what() string {
	if len(r.Some) == 0 {
		return r.Request.String()
	}
	return strings.Replace(r.Request.String(), r.Request.Verb+" ", r.Request.Verb+" all ", 1)
}

// namespaceText says that the answer is about one namespace, which the user did not give.
func (r WhoCanResult) namespaceText() string {
	text := fmt.Sprintf("asked about namespace %s only: give another with -n", r.Request.Namespace)
	if r.Request.Name == "" {
		text += ", or ask about all of them with -A"
	}
	return text
}

func (r WhoCanResult) conditionsText() string {
	text := ""
	if ownNameOnly(r.Conditions) {
		text = ", each of its own name only"
	}
	if len(conditionsExceptName(r.Conditions)) == 0 {
		return text
	}
	return text + ", if " + passesRestriction(r.Request) + ":"
}

func (r WhoCanResult) someText(p *render.Page) {
	if n := len(r.SomeUndecided); n > 0 {
		p.Line(
			"%s what %s can %s by name: %s", render.Unsure.In("not known"), render.Count(n, "node"), r.Request.Verb,
			command.Some(r.SomeUndecided, p.Wide()),
		)
	}
	if len(r.Some) == 0 {
		return
	}
	p.Line("%s can %s some by name:", render.Strong.In(render.Thousands(len(r.Some))), r.Request.Verb)
	p.Line("")
	headers := []string{"NODE", strings.ToUpper(r.Request.Resource)}
	more := render.TableOf(p, 0, whoCanRows, headers, r.Some, func(n nodeThatCanSome) []string {
		names := make([]string, len(n.Objects))
		for i, o := range n.Objects {
			names[i] = render.ObjectName(o)
		}
		return []string{n.Node, command.Some(names, p.Wide())}
	})
	if more > 0 {
		p.Line("… and %s more (use -o wide or -o json)", render.Thousands(more))
	}
}

// Drawing shows all paths to all nodes that can.
func (r WhoCanResult) Drawing() *render.Graph {
	g := render.NewGraph("who can " + r.Request.String())
	for _, n := range r.Nodes {
		g.Vertex(verdict.Object{Kind: "Node", Name: n.Node})
		for _, path := range n.Paths {
			g.Path(path)
		}
	}
	return g
}
