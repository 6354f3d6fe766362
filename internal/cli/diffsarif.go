package cli

import (
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/sarif"
)

// SARIF has a result for each row that widens, under the rule of the last technique of its path, at the
// places in the manifests.
func (r *diffResult) SARIF() any {
	log := pathsLog(r.Missing, nil, r.custom)
	for i := range r.Widened {
		log.Runs[0].Results = append(log.Runs[0].Results, r.Widened[i].sarif(r.custom, r.FailOn))
	}
	return log
}

func (r *diffRow) sarif(custom []attackpaths.CustomTechnique, failOn string) sarif.Result {
	var last attackpaths.Code
	if len(r.Path) > 0 {
		last = r.Path[len(r.Path)-1].Technique
	}
	level := map[attackpaths.Certainty]string{attackpaths.Certain: "error", attackpaths.Possible: "warning"}[r.After]
	if !r.fails(failOn) {
		level = "note"
	}
	return sarif.Result{
		RuleID:    string(last),
		RuleIndex: slices.IndexFunc(allTechniques(custom), func(t attackpaths.Technique) bool { return t.Code == last }),
		Level:     level, Message: sarif.Text(render.Printable(r.sentence())), Locations: r.locations(),
		Properties: map[string]string{"row": r.ID, "before": r.Before.String(), "after": r.After.String()},
	}
}

// sentence says what changes and by which steps.
func (r *diffRow) sentence() string {
	text := fmt.Sprintf("%s → %s: %s → %s.", holdingList(r.Starts, r.StartKind, false), r.reachedText(false), r.Before, r.After)
	for i, step := range r.Path {
		text += fmt.Sprintf(" %d. %s: %s → %s, because %s",
			i+1, step.Technique, holdingText(step.From), holdingText(step.To), step.Because)
		if step.GrantedBy != nil {
			text += fmt.Sprintf(" (%s)", step.GrantedBy)
		}
		if step.DependsOn != "" {
			text += ", depending on " + step.DependsOn
		}
		if place := r.placeText(i + 1); place != "" {
			text += " [" + place + "]"
		}
		text += "."
	}
	return text
}

// locations has the files that other tools can open first.
func (r *diffRow) locations() []sarif.Location {
	var all []sarif.Location
	for _, p := range r.Places {
		l := sarif.Location{LogicalLocations: []sarif.Logical{{FullyQualifiedName: p.Object.String(), Kind: "resource"}}}
		if p.File != "" && p.File != "stdin" {
			l.PhysicalLocation = &sarif.Physical{ArtifactLocation: sarif.Artifact{URI: sarif.FileURI(p.File)}}
			if p.Line > 0 {
				l.PhysicalLocation.Region = &sarif.Region{StartLine: p.Line}
			}
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b sarif.Location) int {
		return fileRank(a) - fileRank(b)
	})
	if len(all) > 0 {
		return all
	}
	return []sarif.Location{{LogicalLocations: []sarif.Logical{{FullyQualifiedName: r.Starts[0].String(), Kind: "resource"}}}}
}

func fileRank(l sarif.Location) int {
	if l.PhysicalLocation == nil {
		return 1
	}
	return 0
}
