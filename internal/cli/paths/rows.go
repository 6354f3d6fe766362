package paths

import (
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
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
