package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Shown is a report in words for people. The text and the page are made of it, so that both say the same.
type Shown struct {
	Origin string `json:"origin"`
	// Headline is what was found in how many checks, and further facts.
	Headline []string `json:"headline"`
	Summary  Summary  `json:"summary"`
	// Roles are the roles that are, or may be, for nodes; Others are the other roles, under a title.
	Roles       []ShownRole `json:"roles"`
	OthersTitle string      `json:"othersTitle,omitempty"`
	Others      [][]string  `json:"others,omitempty"`
	// Findings are sorted, the most severe first. Known are the findings that do not count.
	Findings []ShownFinding `json:"findings"`
	Known    []ShownFinding `json:"known,omitempty"`
	Probes   []ShownProbe   `json:"probes,omitempty"`
	Checks   []ShownCheck   `json:"checks"`
	Missing  []Missing      `json:"missing,omitempty"`
	// Explained says where the codes are explained; empty without findings.
	Explained string `json:"explained,omitempty"`
}

// ShownRow is a name with a text, or with a value and the reason for it.
type ShownRow struct {
	Name  string `json:"name"`
	Value Value  `json:"value,omitempty"`
	Text  string `json:"text"`
}

// ShownRole is the prediction for a role.
type ShownRole struct {
	Title string     `json:"title"`
	Rows  []ShownRow `json:"rows"`
	// works is true if everything works for its nodes.
	works bool
}

// ShownFinding is a finding. Its message begins with the subject, if it does not name it.
type ShownFinding struct {
	finding.Finding
	// At is its place.
	At string `json:"at,omitempty"`
	// Link is the address of the section about its code.
	Link string `json:"link"`
	// Accepted is why it does not count; empty if it does.
	Accepted string `json:"accepted,omitempty"`
}

// ShownProbe is a probe with its outcome in words, and with the requests that it sent and their answers.
type ShownProbe struct {
	probe.Probe
	Words string   `json:"words"`
	Sent  []string `json:"sent"`
}

// ShownCheck is a check, and the names of the input that it lacks.
type ShownCheck struct {
	CheckResult
	Made  bool   `json:"made"`
	Lacks string `json:"lacks,omitempty"`
}

// Shown returns the report in words for people.
func (r *Report) Shown() *Shown {
	s := &Shown{
		Origin: r.Origin, Headline: r.Summary.headline(), Summary: r.Summary, Roles: []ShownRole{}, Findings: []ShownFinding{},
		Checks: []ShownCheck{}, Missing: r.Missing,
	}
	for i := range r.Roles {
		role := &r.Roles[i]
		if role.Purpose == ForOthers {
			s.Others = append(s.Others, []string{role.ARN, role.Username, strings.Join(role.Groups, ", ")})
		} else {
			s.Roles = append(s.Roles, role.shown())
		}
	}
	if len(s.Others) > 0 {
		s.OthersTitle = render.Count(len(s.Others), "role") + ", apparently not for nodes"
	}
	for _, f := range r.Findings {
		s.Findings = append(s.Findings, shownFinding(f, ""))
	}
	for _, known := range r.Suppressed {
		accepted := known.Reason
		if known.Expires != "" {
			accepted += " (until " + string(known.Expires) + ")"
		}
		s.Known = append(s.Known, shownFinding(known.Finding, accepted))
	}
	for i := range r.Probes {
		asked := ShownProbe{r.Probes[i], outcomeWords(r.Probes[i].Outcome), []string{}}
		for j := range r.Probes[i].Sent {
			asked.Sent = append(asked.Sent, sentLine(&r.Probes[i].Sent[j]))
		}
		s.Probes = append(s.Probes, asked)
	}
	for _, c := range r.Checks {
		s.Checks = append(s.Checks, ShownCheck{c, c.Status == Made, strings.Join(c.lacks(), ", ")})
	}
	if len(r.Findings) > 0 {
		s.Explained = "node-authorizer explain-code CODE explains a code; all are in " + findingsURL
	}
	return s
}

func (f *RolePrediction) shown() ShownRole {
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
	mapped := f.Username
	if len(f.Groups) > 0 {
		mapped += " in " + strings.Join(f.Groups, ", ")
	}
	node := f.Node
	if !f.Seen {
		node += " (made up)"
	}
	rows := []ShownRow{
		{Name: "mapped to", Text: mapped},
		{Name: "at", Text: where(f.Place)},
		{Name: forNode, Text: node},
		{Name: "as taken by", Text: f.takenText()},
		f.Registers.row("registers"),
		f.Ready.row("Ready"),
		f.Serving.row("logs and exec"),
		f.isolation().row("isolated"),
		f.NodeAuthorizer.row(NodeAuthorizer),
	}
	rows = slices.DeleteFunc(rows, func(row ShownRow) bool { return row.Text == "" && row.Value == "" })
	return ShownRole{title, rows, f.Works()}
}

// forNode is the name of the row with the node for which a role is predicted.
const forNode = "for node"

func (o Outcome) row(name string) ShownRow { return ShownRow{name, o.Value, o.Why} }

// isolation returns whether the Node authorizer and NodeRestriction restrict the node; zero if it does not
// authenticate.
func (f *RolePrediction) isolation() Outcome {
	switch {
	case f.User == "":
		return Outcome{}
	case f.ClusterAdmin:
		return Outcome{No, "every node of the role may do everything"}
	case f.NodeIdentity:
		return Outcome{Yes, "known as its node to the Node authorizer and NodeRestriction"}
	}
	return Outcome{No, "not known as its node to the Node authorizer and NodeRestriction"}
}

// where returns a place without its key if it has a line.
func where(at finding.Place) string {
	if at.File != "" && at.Line > 0 {
		return fmt.Sprintf("%s:%d", at.File, at.Line)
	}
	return at.String()
}

func shownFinding(f finding.Finding, accepted string) ShownFinding {
	if f.Subject != "" && !strings.Contains(f.Message, f.Subject) {
		f.Message = f.Subject + ": " + f.Message
	}
	return ShownFinding{f, f.Place.String(), reference.Link(reference.Finding, string(f.Code)), accepted}
}

func outcomeWords(o probe.Outcome) string {
	if o == probe.DoesNotHold {
		return "does not hold"
	}
	return string(o)
}

// sentLine returns a request and the response as one line.
func sentLine(s *probe.Sent) string {
	line := s.Method + " " + s.Path
	switch {
	case s.Anonymous:
		line += " without a credential"
	case len(s.Groups) > 0:
		line += fmt.Sprintf(" as %s in %s", s.As, strings.Join(s.Groups, ", "))
	case s.As != "":
		line += " as " + s.As
	}
	if s.Body != "" {
		line += " (" + s.Body + ")"
	}
	if s.Status == 0 {
		return line + ": " + s.Answer
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %d %s", line, s.Status, s.Answer))
}

// headline returns what was found and in how many checks, and then what was not looked at or does not
// count. It says that nothing was found only about checks that were made.
func (s Summary) headline() []string {
	var found []string
	for _, count := range []struct {
		n    int
		noun string
	}{{s.Errors, "error"}, {s.Warnings, "warning"}, {s.Infos, "note"}} {
		if count.n > 0 {
			found = append(found, render.Count(count.n, count.noun))
		}
	}
	parts := []string{strings.Join(found, ", ")}
	checks, made := render.Count(s.Checks, "check"), s.Checks-s.Undetermined
	not := render.Count(s.Undetermined, "check") + " could not be made"
	switch nothing := len(found) == 0; {
	case nothing && made == 0:
		parts = []string{"nothing could be checked: " + not}
	case nothing && s.Undetermined == 0:
		parts = []string{"nothing found in " + checks}
	case nothing:
		parts = []string{fmt.Sprintf("nothing found in %d of %s", made, checks), not}
	case s.Undetermined == 0:
		parts[0] += " in " + checks
	case s.Checks == 1:
		parts = append(parts, "the check could not be made")
	default:
		parts = append(parts, fmt.Sprintf("%d of %s could not be made", s.Undetermined, checks))
	}
	if s.LeftOut > 0 {
		parts = append(parts, render.Count(s.LeftOut, "check")+" left out")
	}
	if s.Suppressed > 0 {
		parts = append(parts, render.Count(s.Suppressed, "known finding"))
	}
	return parts
}
