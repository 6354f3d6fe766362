package paths

import (
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

func (*AttackPathsTrend) DocumentKind() string { return "AttackPathsTrend" }

type trendGroup struct {
	title string
	rows  []trendRow
}

func (t *AttackPathsTrend) groups() []trendGroup {
	return []trendGroup{{"New", t.New}, {"Gone", t.Gone}, {"Unchanged", t.Unchanged}}
}

// unknown is why the answer may not be known.
func (t *AttackPathsTrend) unknown() (lines []string) {
	if !t.SameCluster {
		lines = append(lines, "It is not known whether both are of one cluster: the UID of service account kube-system/default, "+
			"which tells clusters apart, was not read, earlier or now. The earlier document is of "+t.Earlier.Cluster.Origin+".")
	}
	if !t.Complete {
		lines = append(lines, "Not everything could be read, earlier or now: more may be reached, and what is gone may be reached still.")
	}
	return lines
}

// Text writes what is new and gone; -o wide also what is unchanged.
func (t *AttackPathsTrend) Text(p *render.Page) {
	p.Line("%s new, %s gone, %s unchanged since %s (%s)", countStyle(attackpaths.Certain, len(t.New)),
		render.Thousands(len(t.Gone)), render.Thousands(len(t.Unchanged)), t.Earlier.Date, t.File)
	for _, line := range t.unknown() {
		p.Line("%s", render.Unsure.In(line))
	}
	groups := t.groups()
	if !p.Wide() {
		groups = groups[:2]
	}
	for _, g := range groups {
		if len(g.rows) == 0 {
			continue
		}
		p.Section("%s", g.title)
		var rows [][]string
		for _, r := range g.rows {
			rows = append(rows, []string{holdingText(r.Start), holdingText(r.Reaches), r.Before, r.Now})
		}
		p.Table(2, []string{"START", "REACHES", "BEFORE", "NOW"}, rows)
	}
}

// Listing has a row for each change, and for each reason why there may be more. Starts or holdings that are new have a name.
func (t *AttackPathsTrend) Listing() render.Rows {
	all := render.Rows{Field: "new", Columns: []string{"CHANGE", "START", "REACHES", "BEFORE", "NOW"}}
	for i, g := range t.groups() {
		for _, r := range g.rows {
			row := render.Row{Cells: []string{g.title, holdingName(r.Start), holdingName(r.Reaches), r.Before, r.Now}}
			switch {
			case i == 0 && t.ofNodes:
				row.Name = holdingName(r.Start)
			case i == 0:
				row.Name = holdingName(r.Reaches)
			}
			all.Rows = append(all.Rows, row)
		}
	}
	for _, line := range t.unknown() {
		all.Rows = append(all.Rows, render.Row{Cells: []string{unknown, "", "", "", line}})
	}
	return all
}
