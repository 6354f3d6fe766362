package cli

import (
	"encoding/json"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/render"
)

// attackPathsFix are remedies as a shell script: those of the steps of the paths that a table shows,
// or of what to change.
type attackPathsFix struct {
	paths  [][]attackpaths.Step
	advice *attackpaths.Advice
	// target is what the advice keeps nodes from.
	target string
}

// fix is the script for the paths that a table shows.
func (r attackPathsResults) fix() attackPathsFix {
	var f attackPathsFix
	for _, result := range r.Results {
		shown := result.Reached
		if result.maxPaths > 0 {
			shown = shown[:min(result.maxPaths, len(shown))]
		}
		for _, x := range shown {
			f.paths = append(f.paths, x.Path)
		}
	}
	return f
}

// fix is the script for what to change, or else for the paths of the classes.
func (r attackPathsClasses) fix() attackPathsFix {
	f := attackPathsFix{advice: r.WhatToChange, target: targetText(r.Target)}
	for _, c := range r.Classes {
		if len(c.Path) > 0 && f.advice == nil {
			f.paths = append(f.paths, c.Path)
		}
	}
	return f
}

// Text writes the script. Each remedy is there once.
func (f attackPathsFix) Text(p *render.Page) {
	if f.advice != nil {
		f.adviceScript(p)
		return
	}
	if len(f.paths) == 0 {
		p.Comment("nothing to change: there is no path")
		return
	}
	p.Comment("Each remedy ends one step. A path needs one of them; choose what your workloads do not need.")
	seen := map[string]bool{}
	for _, path := range f.paths {
		for _, step := range path {
			text, err := json.Marshal(step.Remedy)
			if err != nil || step.Remedy == nil || seen[string(text)] {
				continue
			}
			seen[string(text)] = true
			p.Line("")
			p.Comment("%s: %s → %s, because %s", step.Technique, holdingText(step.From), holdingText(step.To), step.Because)
			p.Remedy(*step.Remedy, nil)
		}
	}
}

func (f attackPathsFix) adviceScript(p *render.Page) {
	if len(f.advice.Set) == 0 {
		p.Comment("nothing to change: no set of changes helps a node")
	}
	for i, c := range f.advice.Set {
		if i > 0 {
			p.Line("")
		}
		p.Comment("%s", c)
		if c.Remedy != nil {
			p.Remedy(*c.Remedy, nil)
		}
	}
	placingScript(p, f.advice.Placing, f.target)
}
