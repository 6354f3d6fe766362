package doctor

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/render"
)

// Maximum number of rows of each group in the table; wide shows all.
const (
	shownRoles    = 20
	shownOthers   = 10
	shownFindings = 10
)

// Text writes the report as text: the predictions for each role, the findings, and the checks that
// could not be made.
func (r *Report) Text(p *render.Page) {
	s := r.Shown()
	p.Section("Examined %s", s.Origin)
	p.Line("  %s", r.headlineText(s.Headline))
	s.rolesText(p)
	s.othersText(p)
	for _, severity := range finding.Severities() {
		s.findingsText(p, severity)
	}
	if r.ShowKnown {
		s.knownText(p)
	}
	s.probesText(p)
	s.undeterminedText(p)
	if s.Explained != "" {
		p.Line("")
		p.Line("%s", render.Faint.In(s.Explained))
	}
}

// headlineText joins the headline. Its first part has the style of the most severe finding, or of how much
// was checked.
func (r *Report) headlineText(parts []string) string {
	style := render.Good
	worst, found := r.Worst()
	switch {
	case found && worst == finding.Error:
		style = render.Bad
	case found && worst == finding.Info:
		style = render.Faint
	case found || r.Summary.Undetermined > 0:
		style = render.Unsure
	}
	line := style.In(parts[0])
	for _, part := range parts[1:] {
		line += "; " + part
	}
	if r.Summary.Suppressed > 0 && !r.ShowKnown {
		line += ", see --show-known"
	}
	return line
}

// knownText writes the findings that do not count.
func (s *Shown) knownText(p *render.Page) {
	for i, f := range s.Known {
		if i == 0 {
			p.Section("Known findings, which do not count")
		} else {
			p.Line("")
		}
		p.Line("  %s  %s", render.Strong.In(string(f.Code)), render.Faint.In(f.At))
		p.Line("    %s: %s", f.Severity, f.Message)
		p.Line("    %s %s", render.Faint.In("accepted:"), f.Accepted)
	}
}

// undeterminedText writes the checks that could not be made, what they lack, and how to provide it.
func (s *Shown) undeterminedText(p *render.Page) {
	var rows [][]string
	for _, c := range s.Checks {
		if !c.Made {
			rows = append(rows, []string{string(c.ID), c.Title, c.Lacks})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.Section("%s", render.Unsure.In("Not checked"))
	p.Table(2, []string{"CHECK", "ABOUT", "LACKS"}, rows)
	p.Section("What they lack")
	for _, m := range s.Missing {
		p.Line("  %s: %s", m.Resource, m.Reason)
		if m.Remedy != "" {
			p.Hanging(9, "    %s%s", render.Good.In("fix: "), m.Remedy)
		}
	}
}

// rolesText writes the prediction for each role that is, or may be, for nodes.
func (s *Shown) rolesText(p *render.Page) {
	for i := range s.Roles {
		if i < shownRoles || p.Wide() {
			s.Roles[i].text(p)
		}
	}
	if more := len(s.Roles) - shownRoles; more > 0 && !p.Wide() {
		p.Line("")
		p.Line("… and %s more; -o wide shows all", render.Count(more, "role"))
	}
}

// text writes a role. The node is left out where all works, unless the page is wide.
func (role *ShownRole) text(p *render.Page) {
	p.Section("%s", role.Title)
	var fields []render.Field
	for _, row := range role.Rows {
		if row.Name != forNode || p.Wide() || !role.works {
			fields = append(fields, render.Field{Name: row.Name, Value: row.valueText()})
		}
	}
	p.Fields(fields...)
}

func (row ShownRow) valueText() string {
	if row.Value == "" {
		return row.Text
	}
	style := map[Value]render.Style{Yes: render.Good, No: render.Bad, Unknown: render.Unsure}[row.Value]
	return fmt.Sprintf("%s%s  %s", style.In(string(row.Value)), strings.Repeat(" ", 3-min(3, len(row.Value))), row.Text)
}

// othersText writes the roles that are not for nodes.
func (s *Shown) othersText(p *render.Page) {
	if len(s.Others) == 0 {
		return
	}
	p.Section("%s", s.OthersTitle)
	shown := s.Others
	if !p.Wide() {
		shown = shown[:min(shownOthers, len(shown))]
	}
	p.Table(2, []string{"ROLE", "USERNAME", "GROUPS"}, shown)
	if more := len(s.Others) - len(shown); more > 0 {
		p.Line("  … and %d more; -o wide shows all", more)
	}
}

// findingsText writes the findings of a severity, the first few of each code.
func (s *Shown) findingsText(p *render.Page, severity finding.Severity) {
	heading := map[finding.Severity]string{
		finding.Error:   render.Bad.In("Errors"),
		finding.Warning: render.Unsure.In("Warnings"),
		finding.Info:    "Notes",
	}[severity]
	seen := map[finding.Code]int{}
	var left []finding.Code
	first := true
	for _, f := range s.Findings {
		if f.Severity != severity {
			continue
		}
		if first {
			p.Section("%s", heading)
		}
		if seen[f.Code]++; seen[f.Code] > shownFindings && !p.Wide() {
			if seen[f.Code] == shownFindings+1 {
				left = append(left, f.Code)
			}
			continue
		}
		if !first {
			p.Line("")
		}
		first = false
		f.text(p)
	}
	for _, code := range left {
		p.Line("")
		p.Line("  … and %d more of %s; -o wide shows all", seen[code]-shownFindings, code)
	}
}

func (f ShownFinding) text(p *render.Page) {
	p.Line("  %s  %s", render.Strong.In(string(f.Code)), render.Faint.In(f.At))
	p.Line("    %s", f.Message)
	if f.Consequence != "" {
		p.Line("    %s %s", render.Faint.In("→"), f.Consequence)
	}
	label := "fix: "
	for line := range strings.Lines(f.Remedy) {
		p.Hanging(9, "    %s%s", render.Good.In(label), strings.TrimRight(line, "\n"))
		label = "     "
	}
}
