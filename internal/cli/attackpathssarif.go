package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/sarif"
)

const (
	projectURL    = "https://github.com/node-authorizer/node-authorizer"
	techniquesURL = projectURL + "/blob/main/docs/techniques.md"
)

// SARIF has a result for each start that reaches the target, under the rule of the last
// technique of the path.
func (r attackPathsResult) SARIF() any { return pathsLog(r.Missing, []attackPathsResult{r}, r.custom) }

// SARIF has a result for each start that reaches the target.
func (r attackPathsResults) SARIF() any {
	var missing []missing
	for _, result := range r.Results {
		missing = append(missing, result.Missing...)
	}
	return pathsLog(missing, r.Results, r.custom)
}

// SARIF has a result for each class of nodes that reaches the target.
func (r attackPathsClasses) SARIF() any {
	var all []attackPathsResult
	for _, c := range r.Classes {
		result := attackPathsResult{custom: r.custom}
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
	return pathsLog(r.Missing, all, r.custom)
}

// pathsLog makes a log. What could not be read makes the execution unsuccessful: that there is
// no result says nothing then.
func pathsLog(missing []missing, results []attackPathsResult, custom []attackpaths.CustomTechnique) sarif.Log {
	run := sarif.Run{ColumnKind: "unicodeCodePoints", Results: []sarif.Result{}}
	run.Tool.Driver = sarif.Driver{
		Name: "node-authorizer", Version: currentVersion().Version, InformationURI: projectURL,
		Rules: append(techniqueRules(), customRules(custom)...),
	}
	invocation := sarif.Invocation{ExecutionSuccessful: len(missing) == 0}
	if len(missing) > 0 {
		run.Tool.Driver.Notifications = []sarif.Notice{{
			ID: "unread", ShortDescription: sarif.Text("Something that paths may depend on could not be read"), HelpURI: techniquesURL,
		}}
	}
	for _, m := range missing {
		invocation.ToolExecutionNotifications = append(invocation.ToolExecutionNotifications, sarif.Notification{
			Descriptor: sarif.Reference{ID: "unread"}, Level: "error", Message: sarif.Text(m.line()),
		})
	}
	run.Invocations = []sarif.Invocation{invocation}
	addNotFollowed(&run, results)
	for _, r := range results {
		for _, x := range r.Reached {
			if (r.Target != nil || x.Kind == attackpaths.ClusterAdmin) && len(x.Path) > 0 {
				run.Results = append(run.Results, r.sarifResult(x))
			}
		}
	}
	return sarif.Log{Schema: sarif.Schema, Version: "2.1.0", Runs: []sarif.Run{run}}
}

// techniqueRules describe the techniques.
func techniqueRules() []sarif.Rule {
	var rules []sarif.Rule
	for _, t := range attackpaths.Techniques() {
		url := techniquesURL + "#" + strings.ToLower(string(t.Code))
		summary := strings.TrimSuffix(sentence(t.Summary), ".")
		rules = append(rules, sarif.Rule{
			ID: string(t.Code), Name: string(t.Code), ShortDescription: sarif.Text(summary + "."),
			FullDescription: sarif.Text(summary + ". What allows it, and how to take it away: " + url), HelpURI: url,
			Help:                 sarif.Text("MITRE ATT&CK " + t.ATTACK + ". See " + url),
			DefaultConfiguration: sarif.Configuration{Level: "error"},
		})
	}
	return rules
}

// sarifResult says how a start reaches cluster-admin, or the target that is named.
func (r attackPathsResult) sarifResult(x attackpaths.Reached) sarif.Result {
	last := x.Path[len(x.Path)-1].Technique
	level := map[attackpaths.Certainty]string{attackpaths.Certain: "error", attackpaths.Possible: "warning"}[x.Certainty]
	words := certaintyText(x.Certainty, r.targetText())
	text := fmt.Sprintf("%s %s:", r.Start, words)
	if r.nodes > 1 {
		reach := strings.Replace(words, "reaches", "reach", 1)
		text = fmt.Sprintf("%s and %d other nodes %s:", r.Start, r.nodes-1, reach)
	}
	for i, step := range x.Path {
		text += fmt.Sprintf(" %d. %s: %s → %s, because ", i+1, step.Technique, holdingText(step.From), holdingText(step.To))
		text += step.Because
		if step.GrantedBy != nil {
			text += fmt.Sprintf(" (%s)", step.GrantedBy)
		}
		if step.DependsOn != "" {
			text += ", depending on " + step.DependsOn
		}
		text += "."
	}
	return sarif.Result{
		RuleID:    string(last),
		RuleIndex: slices.IndexFunc(allTechniques(r.custom), func(t attackpaths.Technique) bool { return t.Code == last }),
		Level:     level, Message: sarif.Text(text),
		Locations: []sarif.Location{{LogicalLocations: []sarif.Logical{{FullyQualifiedName: r.Start.String(), Kind: "resource"}}}},
	}
}
