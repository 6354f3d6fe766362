package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/verdict"
)

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
	shown := render.Shown(p, whoCanRows, r.Nodes)
	var rows [][]string
	for _, n := range shown {
		rows = append(rows, []string{n.Node, n.DecidedBy, n.through(p.Wide())})
	}
	p.Table(0, []string{"NODE", "BY", "THROUGH"}, rows)
	if more := len(r.Nodes) - len(shown); more > 0 {
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
	shown := render.Shown(p, whoCanRows, r.Some)
	var rows [][]string
	for _, n := range shown {
		names := make([]string, len(n.Objects))
		for i, o := range n.Objects {
			names[i] = render.ObjectName(o)
		}
		rows = append(rows, []string{n.Node, command.Some(names, p.Wide())})
	}
	p.Table(0, []string{"NODE", strings.ToUpper(r.Request.Resource)}, rows)
	if more := len(r.Some) - len(shown); more > 0 {
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
