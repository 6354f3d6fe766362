package paths

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
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

func readTechniques(a *command.App, paths []string) ([]attackpaths.CustomTechnique, error) {
	taken := map[string]string{}
	for _, t := range attackpaths.Techniques() {
		taken[string(t.Code)] = "a built-in technique"
	}
	var all []attackpaths.CustomTechnique
	for _, path := range paths {
		text, err := readTechniquesFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the techniques: %w", err)
		}
		file, err := v1alpha1.ParseTechniques(text, taken)
		if problems := (v1alpha1.Problems{}); errors.As(err, &problems) {
			for _, line := range command.ConfigProblems(path, problems[:min(command.WarningRows, len(problems))]) {
				a.Failure("%s", line)
			}
			if more := len(problems) - command.WarningRows; more > 0 {
				a.Failure("%s: and %s", path, render.Count(more, "other mistake"))
			}
			return nil, fmt.Errorf("the techniques in %s are not valid", path)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i := range file.Techniques {
			all = append(all, customTechnique(&file.Techniques[i]))
			taken[file.Techniques[i].Code] = "a technique of " + path
		}
	}
	if len(all) > attackpaths.MaxCustomTechniques {
		return nil, fmt.Errorf("the files have %d techniques together, want at most %d", len(all), attackpaths.MaxCustomTechniques)
	}
	return all, nil
}

// readTechniquesFile reads no more than a file may have.
func readTechniquesFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, v1alpha1.MaxTechniquesFile+1))
}

func customTechnique(t *v1alpha1.Technique) attackpaths.CustomTechnique {
	custom := attackpaths.CustomTechnique{
		Technique: attackpaths.Technique{Code: attackpaths.Code(t.Code), Summary: t.Summary, ATTACK: t.Attack},
		AllowedBy: customRequests(t.AllowedBy), With: customRequests(t.With),
		DependsOn: t.DependsOn, Remedy: t.Remedy,
	}
	for _, h := range t.Gives {
		custom.Gives = append(custom.Gives, attackpaths.Holding{Kind: string(h.Kind), Namespace: h.Namespace, Name: h.Name})
	}
	return custom
}

func customRequests(all []v1alpha1.TechniqueRequest) []attackpaths.CustomRequest {
	var requests []attackpaths.CustomRequest
	for _, r := range all {
		requests = append(requests, attackpaths.CustomRequest{
			Verbs: r.Verbs, APIGroup: r.APIGroup, Resource: r.Resource, Subresource: r.Subresource,
			ClusterScoped: r.Scope == v1alpha1.ClusterScope, Namespace: r.Namespace, Name: r.Name,
		})
	}
	return requests
}

// noteGaps says what custom techniques name and the state does not have.
func noteGaps(a *command.App, gaps []attackpaths.Gap) {
	for _, gap := range gaps[:min(command.WarningRows, len(gaps))] {
		a.PrintLine("note: ", fmt.Sprintf("technique %s: %s; nothing is reached through it", gap.Technique, gap.Lacks))
	}
	if more := len(gaps) - command.WarningRows; more > 0 {
		a.PrintLine("note: ", fmt.Sprintf("and %s more that techniques name and the state lacks", render.Thousands(more)))
	}
}

func customRules(custom []attackpaths.CustomTechnique) []sarif.Rule {
	var rules []sarif.Rule
	for i := range custom {
		t := &custom[i]
		help := "Take it away: " + strings.TrimSuffix(t.Remedy, ".") + "."
		if t.ATTACK != "" {
			help += " MITRE ATT&CK " + t.ATTACK + "."
		}
		rules = append(rules, sarif.CodeRule(string(t.Code), Sentence(t.Summary), Sentence(t.Summary)+" "+allowedByText(t), help,
			reference.URL+"techniques/own.md", "error"))
	}
	return rules
}

func allowedByText(t *attackpaths.CustomTechnique) string {
	list := func(all []attackpaths.CustomRequest) string {
		var parts []string
		for _, r := range all {
			parts = append(parts, r.String())
		}
		return strings.Join(parts, "; ")
	}
	text := "Allowed by: " + list(t.AllowedBy) + "."
	if len(t.With) > 0 {
		text += " Together with: " + list(t.With) + "."
	}
	if t.DependsOn != "" {
		text += " Depends on: " + strings.TrimSuffix(t.DependsOn, ".") + "."
	}
	return text
}

// Sentence begins with a capital letter and ends with a full stop.
func Sentence(text string) string {
	first := string([]rune(text)[:1])
	return strings.ToUpper(first) + strings.TrimSuffix(strings.TrimPrefix(text, first), ".") + "."
}
