package paths

import (
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
)

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

// techniqueSummaries say what each technique does.
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
