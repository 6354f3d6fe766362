package paths

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
)

// unknown is the certainty of rows that stand for what could not be read.
const unknown = "Unknown"

// holdingName is a holding as a command takes it: KIND/NAMESPACE/NAME.
func holdingName(h attackpaths.Holding) string {
	if h.Kind == attackpaths.ClusterAdmin {
		return clusterAdmin
	}
	return strings.Replace(holdingText(h), " ", "/", 1)
}

// missingRows are rows for what could not be read, with as many cells as the others.
func missingRows(missing []command.Missing, before, after int) (rows []render.Row) {
	for _, m := range missing {
		cells := make([]string, before+after+2)
		cells[before], cells[len(cells)-1] = unknown, m.Resource+": "+m.Reason
		rows = append(rows, render.Row{Cells: cells})
	}
	return rows
}

var pathColumns = []string{"START", "TARGET", "CERTAINTY", "STEPS", "PATH"}

func (r *AttackPathsResult) rows() []render.Row {
	var rows []render.Row
	for _, x := range r.Reached {
		rows = append(rows, render.Row{Name: holdingName(x.Holding), Cells: []string{
			holdingName(r.Start), holdingName(x.Holding), x.Certainty.String(), strconv.Itoa(len(x.Path)), techniquesOf(x.Path),
		}})
	}
	return append(rows, missingRows(r.Missing, 2, 1)...)
}

// techniquesOf is a path in one cell.
func techniquesOf(path []attackpaths.Step) string {
	if len(path) == 0 {
		return ""
	}
	text := holdingName(path[0].From)
	for _, s := range path {
		text += " " + string(s.Technique) + " " + holdingName(s.To)
	}
	return text
}

func (r AttackPathsResult) Listing() render.Rows {
	return render.Rows{Field: "reached", Columns: pathColumns, Rows: r.rows()}
}

func (r AttackPathsResults) Listing() render.Rows {
	all := render.Rows{Field: "results", Columns: pathColumns}
	for _, result := range r.Results {
		all.Rows = append(all.Rows, result.rows()...)
	}
	return all
}

// Listing has a row for each node. Those that reach the target have a name.
func (r AttackPathsClasses) Listing() render.Rows {
	all := render.Rows{Field: "classes", Columns: []string{"NODE", "TARGET", "CERTAINTY", "CLUSTER-ADMIN", "CONTROL PLANE", "PATH"}}
	for _, c := range r.Classes {
		certainty := func(reached attackpaths.Certainty) string {
			if reached == attackpaths.No && len(r.Missing) > 0 {
				return unknown
			}
			return reached.String()
		}
		for _, node := range c.Nodes {
			row := render.Row{Cells: []string{
				node, targetText(r.Target), certainty(classCertainty(c)), certainty(c.ClusterAdmin), strconv.FormatBool(c.ControlPlane),
				techniquesOf(c.Path),
			}}
			if classCertainty(c) != attackpaths.No {
				row.Name = "node/" + node
			}
			all.Rows = append(all.Rows, row)
		}
	}
	all.Rows = append(all.Rows, missingRows(r.Missing, 2, 2)...)
	return all
}

// Listing has a row for each finding. The permalink is its name.
func (r *DiffResult) Listing() render.Rows {
	all := render.Rows{
		Field:   "widened",
		Columns: []string{"ID", "KIND", "BEFORE", "AFTER", "STARTS", "REACHED", "PATH"},
	}
	for _, row := range r.Widened {
		all.Rows = append(all.Rows, render.Row{Name: row.ID, Cells: []string{
			row.ID, row.Kind, row.Before.String(), row.After.String(), holdingNames(row.Starts), holdingNames(row.Reached),
			techniquesOf(row.Path),
		}})
	}
	all.Rows = append(all.Rows, missingRows(r.Missing, 3, 2)...)
	return all
}

func holdingNames(holdings []attackpaths.Holding) string {
	names := make([]string, len(holdings))
	for i, h := range holdings {
		names[i] = holdingName(h)
	}
	return strings.Join(names, " ")
}

// holdingColours show what an attacker owns.
var holdingColours = map[string]string{
	attackpaths.ClusterAdmin: "#e06666", attackpaths.Node: "#f6b26b", attackpaths.ServiceAccount: "#9fc5e8", attackpaths.User: "#9fc5e8",
	attackpaths.Group: "#9fc5e8", attackpaths.Namespace: "#d9ead3", attackpaths.Secret: "#ffe599",
}

// Drawing shows the steps to everything that is reached. Secrets and pods from which nothing
// follows are one box for each namespace and way.
func (r AttackPathsResult) Drawing() *render.Graph {
	title := "attack paths from " + r.Start.String()
	if r.Target != nil {
		title += " to " + r.targetText()
	}
	g := render.NewGraph(title)
	r.draw(g)
	return g
}

func (r AttackPathsResult) draw(g *render.Graph) {
	used := map[attackpaths.Holding]bool{r.Start: true}
	for _, x := range r.Reached {
		for _, step := range x.Path {
			used[step.From] = true
		}
	}
	addHolding(g, r.Start)
	ends := map[attackpaths.Step]int{}
	for _, x := range r.Reached {
		for _, step := range x.Path {
			switch {
			case step.From == step.To:
			case !used[step.To] && (step.To.Kind == attackpaths.Secret || step.To.Kind == attackpaths.Pod):
				end := attackpaths.Step{Technique: step.Technique, From: step.From, To: step.To, Certainty: step.Certainty}
				end.To.Name = ""
				ends[end]++
			default:
				addStep(g, step)
			}
		}
	}
	for end, n := range ends {
		end.To.Name = render.Count(n, map[string]string{attackpaths.Secret: "secret", attackpaths.Pod: "pod"}[end.To.Kind])
		addStep(g, end)
	}
}

func addStep(g *render.Graph, step attackpaths.Step) {
	addHolding(g, step.From)
	addHolding(g, step.To)
	g.Edge(step.From, step.To, string(step.Technique), step.Certainty != attackpaths.Certain)
}

func addHolding(g *render.Graph, h attackpaths.Holding) {
	g.Vertex(h)
	g.Colour(h, holdingColours[h.Kind])
	switch {
	case h.Namespace != "":
		g.Group(h, "namespace "+h.Namespace)
	case h.Kind == attackpaths.Namespace:
		g.Group(h, "namespace "+h.Name)
	}
}

func (r AttackPathsResults) Drawing() *render.Graph {
	g := render.NewGraph(fmt.Sprintf("attack paths from %s", render.Count(len(r.Results), "start")))
	for _, result := range r.Results {
		result.draw(g)
	}
	return g
}

// Drawing shows the path to the target of each class of nodes, which is one box.
func (r AttackPathsClasses) Drawing() *render.Graph {
	title := "attack paths from all nodes"
	if r.Target != nil {
		title += " to " + targetText(r.Target)
	}
	g := render.NewGraph(title)
	for _, c := range r.Classes {
		class := attackpaths.Holding{Kind: attackpaths.Node, Name: c.Nodes[0]}
		if len(c.Nodes) > 1 {
			class.Name = fmt.Sprintf("%s and %s more", c.Nodes[0], render.Thousands(len(c.Nodes)-1))
		}
		addHolding(g, class)
		for _, step := range c.Path {
			if step.From.Kind == attackpaths.Node && step.From.Name == c.Nodes[0] {
				step.From = class
			}
			if step.From != step.To {
				addStep(g, step)
			}
		}
	}
	return g
}

func (r AttackPathsResult) Page() report.Page {
	return AttackPathsResults{Results: []AttackPathsResult{r}, State: r.State, certainOnly: r.certainOnly, custom: r.custom}.Page()
}

func (r AttackPathsResults) Page() report.Page {
	a := report.AttackPaths{State: r.State.ForPage(), CertainOnly: r.certainOnly, Summaries: techniqueSummaries(r.custom)}
	seen := map[command.Missing]bool{}
	var open [][]attackpaths.NotFollowed
	for _, result := range r.Results {
		a.LeftOut += result.LeftOut
		open = append(open, result.NotFollowed)
		row := attackpaths.OverviewRow{Nodes: []string{holdingText(result.Start)}, ClusterAdmin: result.certainty()}
		for _, x := range result.Reached {
			if result.ofOther() || x.Kind == attackpaths.ClusterAdmin {
				row.Path = x.Path
			}
		}
		if result.ofOther() {
			a.Target = result.targetText()
		} else {
			for _, c := range result.Cells() {
				row.Cells = append(row.Cells, int32(len(a.Cells)))
				a.Cells = append(a.Cells, c)
			}
		}
		a.Rows = append(a.Rows, row)
		for _, m := range result.Missing {
			if !seen[m] {
				seen[m] = true
				a.Missing = append(a.Missing, m.ForPage())
			}
		}
	}
	a.NotFollowed, a.NotFollowedCount = notFollowedOnPage(open...)
	return a.Page()
}

func (r AttackPathsClasses) Page() report.Page {
	a := report.AttackPaths{
		AllNodes: true, State: r.State.ForPage(), CertainOnly: r.certainOnly, Advice: r.WhatToChange,
		CertainCells: r.certainCells, LeftOut: r.LeftOut,
		Summaries: techniqueSummaries(r.custom),
	}
	a.NotFollowed, a.NotFollowedCount = notFollowedOnPage(r.notFollowed())
	if r.WhatToChange != nil {
		script := r.fix(nil) // advice makes its own remedies
		a.Commands = render.Plain(script.Text)
	}
	if r.ofOther() {
		a.Target = targetText(r.Target)
		for _, c := range r.Classes {
			row := attackpaths.OverviewRow{Nodes: c.Nodes, ClusterAdmin: classCertainty(c), ControlPlane: c.ControlPlane, Path: c.Path}
			a.Rows = append(a.Rows, row)
		}
	} else {
		a.Cells, a.Rows = r.overview.Cells, r.overview.Rows
	}
	for _, m := range r.Missing {
		a.Missing = append(a.Missing, m.ForPage())
	}
	return a.Page()
}

func techniqueSummaries(custom []attackpaths.CustomTechnique) map[attackpaths.Code]string {
	summaries := map[attackpaths.Code]string{}
	for _, t := range attackpaths.Techniques() {
		summaries[t.Code] = t.Summary
	}
	for _, t := range custom {
		summaries[t.Code] = t.Summary
	}
	return summaries
}
