package paths

import (
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

// SARIF has a result for each row that widens, under the rule of the last technique of its path, at the
// places in the manifests.
func (r *DiffResult) SARIF() any {
	run := pathsRun(r.Missing, nil, r.custom)
	for i := range r.Widened {
		run.Add(r.Widened[i].sarif(r.FailOn))
	}
	return run.Log()
}

func (r *diffRow) sarif(failOn string) sarif.Result {
	var last attackpaths.Code
	if len(r.Path) > 0 {
		last = r.Path[len(r.Path)-1].Technique
	}
	level := certaintyLevel(r.After)
	if !r.fails(failOn) {
		level = "note"
	}
	return sarif.Result{
		RuleID: string(last), Level: level, Message: sarif.Text(render.Printable(r.sentence())), Locations: r.locations(),
		Properties: map[string]string{"row": r.ID, "before": r.Before.String(), "after": r.After.String()},
	}
}

// sentence says what changes and by which steps.
func (r *diffRow) sentence() string {
	return fmt.Sprintf("%s → %s: %s → %s.", holdingList(r.Starts, r.StartKind, false), r.reachedText(false), r.Before, r.After) +
		stepsText(r.Path, r.placeText)
}

// locations has the files that other tools can open first.
func (r *diffRow) locations() []sarif.Location {
	var all []sarif.Location
	for _, p := range r.Places {
		all = append(all, sarif.Place(p.File, p.Line, p.Object.String(), "resource"))
	}
	slices.SortStableFunc(all, func(a, b sarif.Location) int {
		return fileRank(a) - fileRank(b)
	})
	if len(all) > 0 {
		return all
	}
	return []sarif.Location{sarif.Place("", 0, r.Starts[0].String(), "resource")}
}

func fileRank(l sarif.Location) int {
	if l.PhysicalLocation == nil {
		return 1
	}
	return 0
}
