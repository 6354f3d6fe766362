package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

const findingsURL = reference.URL + "findings/README.md"

// SARIF returns the findings for tools that read results of static analysis. If a check could not be
// made, the execution is not successful, because the absence of results means nothing then. Each such
// check has a notification for everything that it lacks.
func (r *Report) SARIF() any {
	run := sarif.NewRun(r.Version, r.sarifRules())
	for _, c := range r.Undetermined() {
		var lacks []string
		for _, m := range c.Missing {
			lacks = append(lacks, fmt.Sprintf("The check %s (%s) could not be made: %s", c.ID, c.Title, sentence(m.String())))
		}
		run.Notify("undetermined/"+string(c.ID), "The check could not be made: "+c.Title, findingsURL+"#checks", "error", lacks...)
	}
	r.sarifProbes(run)
	for _, f := range r.Findings {
		run.Add(sarifResult(f))
	}
	r.sarifSuppressed(run)
	return run.Log()
}

func sarifResult(f finding.Finding) sarif.Result {
	result := sarif.Result{
		RuleID: string(f.Code), Level: sarifLevel(f.Severity), Message: sarif.Text(sarifText(f)), Locations: sarifLocations(f.Place),
	}
	if f.Subject != "" {
		result.Properties = map[string]string{"subject": f.Subject}
	}
	return result
}

// sarifSuppressed adds the suppressed findings. As the format demands, the other results then say that
// they are not suppressed.
func (r *Report) sarifSuppressed(run *sarif.Run) {
	if len(r.Suppressed) == 0 {
		return
	}
	for i := range run.Results {
		run.Results[i].Suppressions = []sarif.Suppression{}
	}
	for _, s := range r.Suppressed {
		result := sarifResult(s.Finding)
		result.Suppressions = []sarif.Suppression{{Kind: "external", Status: "accepted", Justification: s.Reason}}
		run.Add(result)
	}
}

// sarifRules returns the rules of the findings, sorted by id. The most severe findings come first, so
// that a rule has the level of its most severe finding. The full description is in the documentation.
func (r *Report) sarifRules() []sarif.Rule {
	rules := []sarif.Rule{}
	for _, f := range r.all() {
		if slices.ContainsFunc(rules, func(rule sarif.Rule) bool { return rule.ID == string(f.Code) }) {
			continue
		}
		url, title := reference.Link(reference.Finding, string(f.Code)), words(string(f.Code))
		about := title + ": what it means, what happens, and what to do is explained in " + url
		rules = append(rules, sarif.CodeRule(string(f.Code), title, about, "See "+url, url, sarifLevel(f.Severity)))
	}
	slices.SortFunc(rules, func(a, b sarif.Rule) int { return strings.Compare(a.ID, b.ID) })
	return rules
}

// words splits a code into words: "NodeRoleIsAdministrator" becomes "Node role is administrator".
// Abbreviations keep their capitals.
func words(code string) string {
	var b strings.Builder
	isUpper := func(i int) bool { return i < len(code) && code[i] >= 'A' && code[i] <= 'Z' }
	for i := range len(code) {
		begins := i > 0 && isUpper(i) && (!isUpper(i-1) || i+1 < len(code) && !isUpper(i+1))
		switch {
		case begins && i+1 < len(code) && !isUpper(i+1):
			b.WriteString(" " + strings.ToLower(code[i:i+1]))
		case begins:
			b.WriteString(" " + code[i:i+1])
		default:
			b.WriteByte(code[i])
		}
	}
	return b.String()
}

func sarifLevel(s finding.Severity) string {
	if s == finding.Info {
		return "note"
	}
	return string(s)
}

func sarifText(f finding.Finding) string {
	text := sentence(f.Message)
	if f.Consequence != "" {
		text += " What happens: " + sentence(f.Consequence)
	}
	if f.Remedy != "" {
		text += " What to do: " + sentence(f.Remedy)
	}
	return text
}

func sentence(text string) string {
	if strings.Contains(text, "\n") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func sarifLocations(at finding.Place) []sarif.Location {
	kind := "resource"
	if at.Key != "" {
		kind = "member"
	}
	l := sarif.Place(at.File, at.Line, strings.Trim(at.Object+"/"+at.Key, "/"), kind)
	if l.PhysicalLocation == nil && l.LogicalLocations == nil {
		return nil
	}
	return []sarif.Location{l}
}
