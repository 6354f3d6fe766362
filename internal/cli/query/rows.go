package query

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Listing has the answer as its row. It has no name.
func (r CanIResult) Listing() render.Rows {
	cells := []string{r.Answer, r.DecidedBy, strings.TrimLeft(r.why(), ":, ")}
	return render.Rows{Columns: []string{"ANSWER", "BY", "REASON"}, Rows: []render.Row{{Cells: cells}}}
}

// Listing has a row for each rule, and for what limits them or is not known. Rules have no names.
func (r CanIList) Listing() render.Rows {
	all := render.Rows{Field: "rules", Columns: ruleColumns}
	rows := r.rows()
	if r.Scoped {
		rows = append(rows, []string{"", "limited", "", "NodeScopes let only some requests pass: see scopes of -o json"})
	}
	for _, note := range r.notes() {
		rows = append(rows, []string{"", "note", "", note})
	}
	for _, m := range r.Missing {
		rows = append(rows, []string{m.Resource, "unknown", "", m.Reason})
	}
	for _, cells := range rows {
		all.Rows = append(all.Rows, render.Row{Cells: cells})
	}
	return all
}

// Listing has a row for each node that can, and for each that could not be decided.
func (r WhoCanResult) Listing() render.Rows {
	all := render.Rows{Field: "nodes", Columns: []string{"NODE", "ANSWER", "BY", "THROUGH"}}
	for _, n := range r.Nodes {
		all.Rows = append(all.Rows, render.Row{
			Name: "node/" + n.Node, Cells: []string{n.Node, command.Yes, n.DecidedBy, n.through(true)},
		})
	}
	for _, node := range r.Undecided {
		all.Rows = append(all.Rows, render.Row{Cells: []string{node, "unknown", "", ""}})
	}
	return all
}

// Listing has a row for each object that is reached, and for what could not be read.
func (r ReachResult) Listing() render.Rows {
	all := render.Rows{Field: "objects", Columns: []string{"KIND", "NAMESPACE", "NAME", "VERBS", "THROUGH"}}
	for _, o := range r.Objects {
		var verbs, through []string
		for _, p := range o.May {
			text := strings.Join(p.Verbs, " ")
			if p.Subresource != "" {
				text += " on " + p.Subresource
			}
			verbs = append(verbs, text)
		}
		for _, path := range o.Paths {
			through = append(through, path[len(path)-1].From.String())
		}
		all.Rows = append(all.Rows, render.Row{Name: strings.Replace(o.Object.String(), " ", "/", 1), Cells: []string{
			o.Kind, o.Namespace, o.Name, strings.Join(verbs, "; "), strings.Join(through, "; "),
		}})
	}
	for _, m := range r.Missing {
		all.Rows = append(all.Rows, render.Row{Cells: []string{"unknown", "", m.Resource, "", m.Reason}})
	}
	return all
}
