package paths

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

const techniquesURL = reference.URL + "techniques/README.md"

// SARIF has a result for each start that reaches the target, under the rule of the last
// technique of the path.
func (r AttackPathsResult) SARIF() any {
	return pathsRun(r.Missing, []AttackPathsResult{r}, r.custom).Log()
}

// SARIF has a result for each start that reaches the target.
func (r AttackPathsResults) SARIF() any {
	var missing []command.Missing
	for _, result := range r.Results {
		missing = append(missing, result.Missing...)
	}
	return pathsRun(missing, r.Results, r.custom).Log()
}

// SARIF has a result for each class of nodes that reaches the target.
func (r AttackPathsClasses) SARIF() any {
	var all []AttackPathsResult
	for _, c := range r.Classes {
		result := AttackPathsResult{custom: r.custom}
		if r.Target != nil {
			result.Target = &attackpaths.Target{Holding: *r.Target, Certainty: classCertainty(c)}
		}
		result.Start = attackpaths.Holding{Kind: attackpaths.Node, Name: c.Nodes[0]}
		result.ClusterAdmin, result.nodes, result.NotFollowed = c.ClusterAdmin, len(c.Nodes), c.NotFollowed
		if len(c.Path) > 0 {
			result.Reached = []attackpaths.Reached{{
				Holding: c.Path[len(c.Path)-1].To, Certainty: classCertainty(c), Path: c.Path,
			}}
		}
		all = append(all, result)
	}
	return pathsRun(r.Missing, all, r.custom).Log()
}

func pathsRun(missing []command.Missing, results []AttackPathsResult, custom []attackpaths.CustomTechnique) *sarif.Run {
	run := sarif.NewRun(command.CurrentVersion().Version, append(techniqueRules(), customRules(custom)...))
	if len(missing) > 0 {
		var lines []string
		for _, m := range missing {
			lines = append(lines, m.Line())
		}
		run.Notify("unread", "Something that paths may depend on could not be read", techniquesURL, "error", lines...)
	}
	addNotFollowed(run, results)
	for _, r := range results {
		for _, x := range r.Reached {
			if (r.Target != nil || x.Kind == attackpaths.ClusterAdmin) && len(x.Path) > 0 {
				run.Add(r.sarifResult(x))
			}
		}
	}
	return run
}

func techniqueRules() []sarif.Rule {
	var rules []sarif.Rule
	for _, t := range attackpaths.Techniques() {
		url := reference.Link(reference.Technique, string(t.Code))
		summary := strings.TrimSuffix(Sentence(t.Summary), ".")
		rules = append(rules, sarif.CodeRule(string(t.Code), summary+".", summary+". What allows it, and how to take it away: "+url,
			"MITRE ATT&CK "+t.ATTACK+". See "+url, url, "error"))
	}
	return rules
}

func certaintyLevel(c attackpaths.Certainty) string {
	switch c {
	case attackpaths.Certain:
		return "error"
	case attackpaths.Possible:
		return "warning"
	}
	return ""
}

// stepsText says by which steps something is reached. Place, if set, returns where a step comes from.
func stepsText(path []attackpaths.Step, place func(step int) string) string {
	var text string
	for i, step := range path {
		text += fmt.Sprintf(" %d. %s: %s → %s, because %s",
			i+1, step.Technique, holdingText(step.From), holdingText(step.To), step.Because)
		if step.GrantedBy != nil {
			text += fmt.Sprintf(" (%s)", step.GrantedBy)
		}
		if step.DependsOn != "" {
			text += ", depending on " + step.DependsOn
		}
		if place != nil {
			if at := place(i + 1); at != "" {
				text += " [" + at + "]"
			}
		}
		text += "."
	}
	return text
}

// sarifResult says how a start reaches cluster-admin, or the target that is named.
func (r AttackPathsResult) sarifResult(x attackpaths.Reached) sarif.Result {
	words := certaintyText(x.Certainty, r.targetText())
	text := fmt.Sprintf("%s %s:", r.Start, words)
	if r.nodes > 1 {
		reach := strings.Replace(words, "reaches", "reach", 1)
		text = fmt.Sprintf("%s and %d other nodes %s:", r.Start, r.nodes-1, reach)
	}
	return sarif.Result{
		RuleID: string(x.Path[len(x.Path)-1].Technique), Level: certaintyLevel(x.Certainty),
		Message: sarif.Text(text + stepsText(x.Path, nil)), Locations: []sarif.Location{sarif.Place("", 0, r.Start.String(), "resource")},
	}
}
