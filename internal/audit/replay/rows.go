package replay

import (
	"cmp"
	"strconv"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Listing has a row for each different request that would be refused, was refused or is undecided, for each kubelet that does
// not conform, and for what is not known. The first row of a node that would be refused something has the node's name.
func (r *Report) Listing() render.Rows {
	all := render.Rows{
		Field: "wouldBeRefused", Columns: []string{"ANSWER", "NODE", "REQUEST", "CODE", "COUNT", "LAST", "IDENTITY", "WHY"},
	}
	add := func(answer, node, request, code string, count int, last, identity, why string) {
		all.Rows = append(all.Rows, render.Row{Cells: []string{answer, node, request, code, strconv.Itoa(count), last, identity, why}})
	}
	list := func(answer string, of []Refusal, more []Remainder, row func(Refusal, bool) []string) {
		for _, refusal := range of {
			cells := row(refusal, true)
			add(answer, refusal.Node, cells[1], cells[2], refusal.Count, cells[4], cells[5], cells[6])
		}
		for _, m := range more {
			request := Refusal{Group: m.Group, Resource: m.Resource, Subresource: m.Subresource}.question()
			add(answer, m.Node, request, string(m.Code), m.Count, "", "", "beyond the bound of the list")
		}
	}
	more := cmp.Or(r.More, &More{})
	list("would be refused", r.WouldBeRefused, more.WouldBeRefused, Refusal.wouldRow)
	named := map[string]bool{"": true}
	for i := range all.Rows {
		if node := all.Rows[i].Cells[1]; !named[node] {
			all.Rows[i].Name, named[node] = "node/"+node, true
		}
	}
	list("was refused", r.Refused, more.Refused, Refusal.refusedRow)
	list("undecided", r.Undecided, more.Undecided, Refusal.undecidedRow)
	for _, id := range r.Nonconforming {
		add("nonconforming", names(id.Nodes, id.MoreNodes, true), "", "", id.Count, "", id.Username, id.Why)
	}
	for _, n := range r.NotExamined {
		what := Refusal{Verb: n.Verb, Group: n.Group, Resource: n.Resource, Subresource: n.Subresource}.question()
		add("not examined", "", what, "", n.Count, "", "", string(n.Why))
	}
	for _, node := range r.Nodes.Silent {
		add("not seen", node, "", "", 0, "", "", "the log does not mention the node")
	}
	if r.Totals.BrokenLines > 0 {
		add("not read", "", "", "", r.Totals.BrokenLines, "", "", "broken lines")
	}
	return all
}
