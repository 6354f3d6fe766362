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
	p.Section("Examined %s", r.Origin)
	p.Line("  %s", r.summaryText())
	r.rolesText(p)
	r.othersText(p)
	for _, severity := range finding.Severities() {
		r.findingsText(p, severity)
	}
	r.knownText(p)
	r.probesText(p)
	r.undeterminedText(p)
	if len(r.Findings) > 0 {
		p.Line("")
		p.Line("%s", render.Faint.In("Every code is explained in "+findingsURL))
	}
}

// summaryText returns the counts as text, with that of the suppressed findings.
func (r *Report) summaryText() string {
	line := r.Summary.line()
	if n := r.Summary.Suppressed; n > 0 {
		line += "; " + render.Count(n, "known finding")
		if !r.ShowKnown {
			line += ", see --show-known"
		}
	}
	return line
}

// knownText writes the suppressed findings.
func (r *Report) knownText(p *render.Page) {
	if !r.ShowKnown || len(r.Suppressed) == 0 {
		return
	}
	p.Section("Known findings, which do not count")
	for i, s := range r.Suppressed {
		if i > 0 {
			p.Line("")
		}
		p.Line("  %s  %s", render.Strong.In(string(s.Code)), render.Faint.In(s.Place.String()))
		p.Line("    %s: %s", s.Severity, s.Message)
		reason := s.Reason
		if s.Expires != "" {
			reason += " (until " + string(s.Expires) + ")"
		}
		p.Line("    %s %s", render.Faint.In("accepted:"), reason)
	}
}

// line returns the counts as text. It says that nothing was found only about checks that were made.
func (s Summary) line() string {
	var parts []string
	for _, part := range []struct {
		n     int
		noun  string
		style render.Style
	}{{s.Errors, "error", render.Bad}, {s.Warnings, "warning", render.Unsure}, {s.Infos, "note", render.Faint}} {
		if part.n > 0 {
			parts = append(parts, part.style.In(render.Count(part.n, part.noun)))
		}
	}
	line := strings.Join(parts, ", ")
	made := s.Checks - s.Undetermined
	not := fmt.Sprintf("%s could not be made", render.Count(s.Undetermined, "check"))
	switch {
	case made == 0 && line == "":
		line = render.Unsure.In("nothing could be checked: " + not)
	case s.Undetermined == 0 && line == "":
		line = render.Good.In("nothing found in " + render.Count(s.Checks, "check"))
	case line == "":
		line = render.Unsure.In(fmt.Sprintf("nothing found in %d of %s; %s", made, render.Count(s.Checks, "check"), not))
	case s.Undetermined > 0:
		line += fmt.Sprintf(" in %s; %s", render.Count(s.Checks, "check"), render.Unsure.In(not))
	default:
		line += " in " + render.Count(s.Checks, "check")
	}
	if s.LeftOut > 0 {
		line += fmt.Sprintf("; %s left out", render.Count(s.LeftOut, "check"))
	}
	return line
}

// undeterminedText writes the checks that could not be made, what they lack, and how to provide it.
func (r *Report) undeterminedText(p *render.Page) {
	list := r.Undetermined()
	if len(list) == 0 {
		return
	}
	p.Section("%s", render.Unsure.In("Not checked"))
	var rows [][]string
	for _, c := range list {
		rows = append(rows, []string{string(c.ID), c.Title, strings.Join(c.lacks(), ", ")})
	}
	p.Table(2, []string{"CHECK", "ABOUT", "LACKS"}, rows)
	p.Section("What they lack")
	for _, m := range r.Missing {
		p.Line("  %s: %s", m.Resource, m.Reason)
		if m.Remedy != "" {
			p.Hanging(9, "    %s%s", render.Good.In("fix: "), m.Remedy)
		}
	}
}

// rolesText writes the prediction for each role that is, or may be, for nodes.
func (r *Report) rolesText(p *render.Page) {
	shown := 0
	for i := range r.Roles {
		role := &r.Roles[i]
		if role.Purpose == ForOthers {
			continue
		}
		if shown++; shown <= shownRoles || p.Wide() {
			role.text(p)
		}
	}
	if more := shown - shownRoles; more > 0 && !p.Wide() {
		p.Line("")
		p.Line("… and %s more; -o wide shows all", render.Count(more, "role"))
	}
}

func (f *RolePrediction) text(p *render.Page) {
	title := "Role " + f.ARN
	if f.ARN == "" {
		title = "Role whose ARN is missing"
	}
	switch f.Purpose {
	case ForFargate:
		title += " (Fargate)"
	case ForHybrid:
		title += " (hybrid nodes)"
	case NotKnown:
		title += " (if nodes use it)"
	}
	p.Section("%s", title)
	mapped := f.Username
	if len(f.Groups) > 0 {
		mapped += render.Faint.In(" in ") + strings.Join(f.Groups, ", ")
	}
	node := f.Node
	if !f.Seen {
		node += render.Faint.In(" (made up)")
	}
	fields := []render.Field{{Name: "mapped to", Value: mapped}, {Name: "at", Value: where(f.Place)}}
	if p.Wide() || !f.Works() {
		fields = append(fields, render.Field{Name: "for node", Value: node})
	}
	fields = append(fields,
		render.Field{Name: "as taken by", Value: f.takenText()},
		render.Field{Name: "registers", Value: f.Registers.text()},
		render.Field{Name: "Ready", Value: f.Ready.text()},
		render.Field{Name: "logs and exec", Value: f.Serving.text()},
		render.Field{Name: "isolated", Value: f.isolation()},
		render.Field{Name: NodeAuthorizer, Value: f.refusedText()},
	)
	p.Fields(fields...)
}

func (o Outcome) text() string {
	style := map[Value]render.Style{Yes: render.Good, No: render.Bad, Unknown: render.Unsure}[o.Value]
	return fmt.Sprintf("%s%s  %s", style.In(string(o.Value)), strings.Repeat(" ", 3-min(3, len(o.Value))), o.Why)
}

// isolation returns whether the Node authorizer and NodeRestriction restrict the node.
func (f *RolePrediction) isolation() string {
	switch {
	case f.User == "":
		return ""
	case f.ClusterAdmin:
		return Outcome{No, "every node of the role may do everything"}.text()
	case f.NodeIdentity:
		return Outcome{Yes, "known as its node to the Node authorizer and NodeRestriction"}.text()
	}
	return Outcome{No, "not known as its node to the Node authorizer and NodeRestriction"}.text()
}

// where returns a place without its key if it has a line.
func where(at finding.Place) string {
	if at.File != "" && at.Line > 0 {
		return fmt.Sprintf("%s:%d", at.File, at.Line)
	}
	return at.String()
}

// othersText writes the roles that are not for nodes.
func (r *Report) othersText(p *render.Page) {
	var rows [][]string
	for _, role := range r.Roles {
		if role.Purpose == ForOthers {
			rows = append(rows, []string{role.ARN, role.Username, strings.Join(role.Groups, ", ")})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.Section("%s for others than nodes, as it seems", render.Count(len(rows), "role"))
	shown := rows
	if !p.Wide() {
		shown = rows[:min(shownOthers, len(rows))]
	}
	p.Table(2, []string{"ROLE", "USERNAME", "GROUPS"}, shown)
	if more := len(rows) - len(shown); more > 0 {
		p.Line("  … and %d more; -o wide shows all", more)
	}
}

// findingsText writes the findings of a severity, the first few of each code.
func (r *Report) findingsText(p *render.Page, severity finding.Severity) {
	heading := map[finding.Severity]string{
		finding.Error:   render.Bad.In("Errors"),
		finding.Warning: render.Unsure.In("Warnings"),
		finding.Info:    "Notes",
	}[severity]
	seen := map[finding.Code]int{}
	var left []finding.Code
	first := true
	for _, f := range r.Findings {
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
		findingText(p, f)
	}
	for _, code := range left {
		p.Line("")
		p.Line("  … and %d more of %s; -o wide shows all", seen[code]-shownFindings, code)
	}
}

func findingText(p *render.Page, f finding.Finding) {
	p.Line("  %s  %s", render.Strong.In(string(f.Code)), render.Faint.In(f.Place.String()))
	subject := ""
	if f.Subject != "" && !strings.Contains(f.Message, f.Subject) {
		subject = f.Subject + ": "
	}
	p.Line("    %s%s", subject, f.Message)
	if f.Consequence != "" {
		p.Line("    %s %s", render.Faint.In("→"), f.Consequence)
	}
	label := "fix: "
	for line := range strings.Lines(f.Remedy) {
		p.Hanging(9, "    %s%s", render.Good.In(label), strings.TrimRight(line, "\n"))
		label = "     "
	}
}
