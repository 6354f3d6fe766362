package doctor

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
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
		each(p, "Known findings, which do not count", s.Known, func(f ShownFinding) {
			p.Line("  %s  %s", render.Strong.In(string(f.Code)), render.Faint.In(f.At))
			p.Line("    %s: %s", f.Severity, f.Message)
			p.Line("    %s %s", render.Faint.In("accepted:"), f.Accepted)
		})
	}
	each(p, "Probes: what the API server was asked; nothing was changed", s.Probes, func(asked ShownProbe) {
		style := styleOf(asked.Outcome == probe.Holds, asked.Outcome == probe.DoesNotHold)
		p.Line("  %s  %s", render.Strong.In(string(asked.ID)), asked.Question)
		p.Line("    %s: %s", style.In(asked.Words), asked.Why)
		for _, line := range asked.Sent {
			p.Line("    %s", render.Faint.In(line))
		}
	})
	s.undeterminedText(p)
	if s.Explained != "" {
		p.Line("")
		p.Line("%s", render.Faint.In(s.Explained))
	}
}

// Listing has a row for each finding, named by its code, and for each check that could not be made.
func (r *Report) Listing() render.Rows {
	all := render.Rows{
		Field: "findings", Short: 5,
		Columns: []string{"SEVERITY", "CODE", "PLACE", "SUBJECT", "MESSAGE", "CONSEQUENCE", "REMEDY"},
	}
	for _, f := range r.Findings {
		all.Rows = append(all.Rows, render.Row{Name: string(f.Code), Cells: []string{
			string(f.Severity), string(f.Code), f.Place.String(), f.Subject, f.Message, f.Consequence, f.Remedy,
		}})
	}
	for _, c := range r.Undetermined() {
		all.Rows = append(all.Rows, render.Row{Cells: []string{
			string(c.Status), string(c.ID), "", "", c.Title + ": not checked, because it lacks " + strings.Join(c.lacks(), ", "), "", "",
		}})
	}
	return all
}

// each writes a section with the entries of a list, and an empty line between them.
func each[T any](p *render.Page, title string, list []T, text func(T)) {
	for i, entry := range list {
		if i == 0 {
			p.Section("%s", title)
		} else {
			p.Line("")
		}
		text(entry)
	}
}

func styleOf(good, bad bool) render.Style {
	switch {
	case good:
		return render.Good
	case bad:
		return render.Bad
	}
	return render.Unsure
}

// headlineText joins the headline. Its first part has the style of the most severe finding, or of how much
// was checked.
func (r *Report) headlineText(parts []string) string {
	worst, found := r.Worst()
	style := styleOf(!found && r.Summary.Undetermined == 0, worst == finding.Error)
	if worst == finding.Info {
		style = render.Faint
	}
	line := strings.Join(append([]string{style.In(parts[0])}, parts[1:]...), "; ")
	if r.Summary.Suppressed > 0 && !r.ShowKnown {
		line += ", see --show-known"
	}
	return line
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

// rolesText writes the prediction for each role that is, or may be, for nodes. It leaves out the node where all
// works, unless the page is wide.
func (s *Shown) rolesText(p *render.Page) {
	shown := render.Shown(p, shownRoles, s.Roles)
	for _, role := range shown {
		p.Section("%s", role.Title)
		var fields []render.Field
		for _, row := range role.Rows {
			if row.Name != forNode || p.Wide() || !role.works {
				fields = append(fields, render.Field{Name: row.Name, Value: row.valueText()})
			}
		}
		p.Fields(fields...)
	}
	if more := len(s.Roles) - len(shown); more > 0 {
		p.Line("")
		p.Line("… and %s more; -o wide shows all", render.Count(more, "role"))
	}
}

func (row ShownRow) valueText() string {
	if row.Value == "" {
		return row.Text
	}
	style := styleOf(row.Value == Yes, row.Value == No)
	return fmt.Sprintf("%s%s  %s", style.In(string(row.Value)), strings.Repeat(" ", 3-min(3, len(row.Value))), row.Text)
}

// othersText writes the roles that are not for nodes.
func (s *Shown) othersText(p *render.Page) {
	if len(s.Others) == 0 {
		return
	}
	p.Section("%s", s.OthersTitle)
	shown := render.Shown(p, shownOthers, s.Others)
	p.Table(2, []string{"ROLE", "USERNAME", "GROUPS"}, shown)
	if more := len(s.Others) - len(shown); more > 0 {
		p.Line("  … and %d more; -o wide shows all", more)
	}
}

// findingsText writes the findings of a severity, the first few of each code.
func (s *Shown) findingsText(p *render.Page, severity finding.Severity) {
	heading := "Notes"
	switch severity {
	case finding.Error:
		heading = render.Bad.In("Errors")
	case finding.Warning:
		heading = render.Unsure.In("Warnings")
	}
	seen := map[finding.Code]int{}
	var list []ShownFinding
	var left []finding.Code
	for _, f := range s.Findings {
		if f.Severity != severity {
			continue
		}
		seen[f.Code]++
		switch n := seen[f.Code]; {
		case n <= shownFindings || p.Wide():
			list = append(list, f)
		case n == shownFindings+1:
			left = append(left, f.Code)
		}
	}
	each(p, heading, list, func(f ShownFinding) {
		p.Line("  %s  %s", render.Strong.In(p.Code(reference.Finding, string(f.Code))), render.Faint.In(f.At))
		p.Line("    %s", f.Message)
		if f.Consequence != "" {
			p.Line("    %s %s", render.Faint.In("→"), f.Consequence)
		}
		label := "fix: "
		for line := range strings.Lines(f.Remedy) {
			p.Hanging(9, "    %s%s", render.Good.In(label), strings.TrimRight(line, "\n"))
			label = "     "
		}
	})
	for _, code := range left {
		p.Line("")
		p.Line("  … and %d more of %s; -o wide shows all", seen[code]-shownFindings, code)
	}
}

// shown is the maximum number of list entries in a line.
const shown = 3

// some returns the first entries, and the number of the others.
func some(list []string) string { return render.Names(list, shown) }

// shell quotes a command for a shell: names in a cluster may contain special characters.
func shell(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = render.Shell(w)
	}
	return strings.Join(quoted, " ")
}
