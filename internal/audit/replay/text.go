package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// shown is the number of rows of a table that is not wide.
const shown = 20

// Text writes the obstacles to Node authorization first, and details of the log last.
func (r *Report) Text(p *render.Page) {
	r.header(p)
	var rest left
	if r.More != nil {
		rest = left{sum(r.More.WouldBeRefused), sum(r.More.Refused), sum(r.More.Undecided)}
	}
	refusals(p, "Would be refused", r.WouldBeRefused, r.Totals.WouldBeRefused, rest.would, Refusal.wouldRow)
	if r.Totals.NotInState > 0 {
		p.Line("  %s", render.Faint.In(fmt.Sprintf(
			"* %s about objects that are not in the state, but may have existed at the time of the request",
			render.Count(r.Totals.NotInState, "request"))))
	}
	refusals(p, "Were refused", r.Refused, r.Totals.Refused, rest.refused, Refusal.refusedRow)
	refusals(p, "Could not be decided", r.Undecided, r.Totals.Undecided, rest.undecided, Refusal.undecidedRow)
	r.undecidedWhy(p)
	r.identities(p)
	r.Nodes.text(p)
	r.notExamined(p)
}

type left struct{ would, refused, undecided int }

func sum(all []Remainder) (n int) {
	for _, m := range all {
		n += m.Count
	}
	return n
}

func (r *Report) header(p *render.Page) {
	t := r.Totals
	p.Line("%s", render.Strong.In(r.headline()))
	var span string
	if t.First != nil {
		span = fmt.Sprintf("%s … %s (%s)", t.First.Format(time.RFC3339), t.Last.Format(time.RFC3339), t.Duration)
	}
	p.Fields(
		render.Field{Name: "log", Value: fmt.Sprintf("%s, %s, %s",
			render.Count(t.Files, "file"), render.Count(t.Lines, "line"), render.Count(t.Events, "event"))},
		render.Field{Name: "time", Value: span},
		render.Field{Name: "requests of kubelets", Value: fmt.Sprintf("%s: %s conforming, %s nonconforming, %s bootstrapping",
			render.Thousands(t.Requests), render.Thousands(t.Conforming), render.Thousands(t.Nonconforming),
			render.Thousands(t.Bootstrapping))},
		render.Field{Name: "answered", Value: fmt.Sprintf("%s allowed, %s refused%s",
			render.Thousands(t.Allowed), render.Thousands(t.Refused), optional(t.Unanswered, ", %s not decided"))},
		render.Field{Name: "may be counted twice", Value: optional(t.MaybeTwice, "up to %s, of requests that take long")},
		render.Field{Name: "impersonated", Value: optional(t.Impersonated, "%s")},
		render.Field{Name: "without a valid credential", Value: optional(t.Unauthenticated, "%s, by their user agent")},
		render.Field{Name: "left out of the state", Value: strings.Join(r.LeftOut, ", ")},
		render.Field{Name: "not read", Value: r.notRead()},
	)
}

func (r *Report) notRead() string {
	var parts []string
	if n := r.Totals.BrokenLines; n > 0 {
		parts = append(parts, render.Count(n, "broken line"))
	}
	if n := r.Totals.UnfinishedLines; n > 0 {
		parts = append(parts, render.Count(n, "unfinished line"))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) headline() string {
	t := r.Totals
	switch {
	case t.WouldBeRefused > 0:
		return fmt.Sprintf("%s of %s would be refused", render.Thousands(t.WouldBeRefused), render.Count(t.Allowed, "allowed request"))
	case t.Requests == 0:
		return "no requests of kubelets"
	case t.Undecided > 0:
		return fmt.Sprintf("%s of %s could not be decided", render.Thousands(t.Undecided), render.Count(t.Allowed, "allowed request"))
	}
	return fmt.Sprintf("none of %s would be refused", render.Count(t.Allowed, "allowed request"))
}

func optional(n int, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, render.Thousands(n))
}

func refusals(p *render.Page, title string, list []Refusal, total, rest int, row func(Refusal, bool) []string) {
	if total == 0 {
		return
	}
	p.Section("%s: %s, %s different", title, render.Count(total, "request"), render.Thousands(len(list)))
	headers := []string{"NODE", "REQUEST", "CODE", "COUNT", "LAST"}
	if p.Wide() {
		headers = append(headers, "IDENTITY", "WHY")
	}
	hidden := render.TableOf(p, 2, shown, headers, list, func(r Refusal) []string {
		p.Code(reference.Reason, string(r.Code))
		return row(r, p.Wide())
	})
	hiddenText(p, hidden)
	if rest > 0 {
		p.Line("  %s", render.Faint.In(fmt.Sprintf(
			"and %s beyond the bound of the list, counted in -o json by node, resource and code", render.Count(rest, "request"),
		)))
	}
}

func (r Refusal) row(code, why string, wide bool) []string {
	row := []string{cmp.Or(r.Node, "?"), r.question(), code, render.Thousands(r.Count), r.Last.UTC().Format(time.RFC3339)}
	if wide {
		row = append(row, r.Identity, why)
	}
	return row
}

func (r Refusal) wouldRow(wide bool) []string {
	code := string(r.Code)
	if r.Caveat != "" {
		code += "*"
	}
	why := r.Message
	if r.AsNode == saysAllow {
		why += "; allowed to the node's own user"
	}
	return r.row(render.Bad.In(code), why, wide)
}

func (r Refusal) refusedRow(wide bool) []string {
	code, why := string(r.Code), r.Reason
	switch {
	case r.Evaluators == saysAllow:
		code = "by " + r.By + ", allowed here"
	case r.Evaluators == saysUndecided:
		code = "by " + r.By + ", undecided here"
	case r.Message != "":
		why = strings.TrimPrefix(why+"; here: "+r.Message, "; here: ")
	}
	return r.row(render.Bad.In(code), why, wide)
}

func (r Refusal) undecidedRow(wide bool) []string {
	return r.row(render.Unsure.In("undecided"), r.Error, wide)
}

// undecidedWhy lists the first reasons why requests could not be decided. The table that is
// not wide does not have them.
func (r *Report) undecidedWhy(p *render.Page) {
	const few = 3
	if p.Wide() {
		return
	}
	var causes []string
	for _, u := range r.Undecided {
		if !slices.Contains(causes, u.Error) {
			causes = append(causes, u.Error)
		}
	}
	for _, cause := range causes[:min(few, len(causes))] {
		p.Line("  %s", cause)
	}
	if more := len(causes) - few; more > 0 {
		p.Line("  %s", render.Faint.In(fmt.Sprintf("and %s: -o wide or -o json shows all", render.Count(more, "other cause"))))
	}
}

// question returns the request in short form: "get secrets shop/db".
func (r Refusal) question() string {
	if r.Resource == "" {
		return r.Verb + " " + r.Path
	}
	what := r.Resource
	if r.Group != "" {
		what += "." + r.Group
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	switch {
	case r.Namespace != "" && r.Name != "":
		what += " " + r.Namespace + "/" + r.Name
	case r.Namespace != "":
		what += " in " + r.Namespace
	case r.Name != "":
		what += " " + r.Name
	}
	if r.FieldSelector != "" {
		what += " --field-selector=" + r.FieldSelector
	}
	if r.LabelSelector != "" {
		what += " --selector=" + r.LabelSelector
	}
	return r.Verb + " " + what
}

func (r *Report) identities(p *render.Page) {
	if len(r.Nonconforming) == 0 {
		return
	}
	p.Section("Nonconforming kubelets: %s", render.Count(len(r.Nonconforming), "identity"))
	headers := []string{"USER", "GROUPS", "NODES", "COUNT", "WHY"}
	if p.Wide() {
		headers = append(headers, "USER AGENTS")
	}
	hidden := render.TableOf(p, 2, shown, headers, r.Nonconforming, func(id Identity) []string {
		nodes := names(id.Nodes, id.MoreNodes, p.Wide())
		row := []string{id.Username, strings.Join(id.Groups, ","), nodes, render.Thousands(id.Count), id.Why}
		if p.Wide() {
			row = append(row, strings.Join(id.UserAgents, "; "))
		}
		return row
	})
	hiddenText(p, hidden)
}

func hiddenText(p *render.Page, rows int) {
	if rows > 0 {
		p.Line("  %s", render.Faint.In(fmt.Sprintf("and %s more: -o wide or -o json shows all", render.Thousands(rows))))
	}
}

func names(all []string, more int, wide bool) string {
	const few = 5
	if !wide && len(all) > few {
		all, more = all[:few], more+len(all)-few
	}
	text := strings.Join(all, ", ")
	switch {
	case text == "":
		return "?"
	case more > 0:
		text += fmt.Sprintf(" and %s more", render.Thousands(more))
	}
	return text
}

func (n Nodes) text(p *render.Page) {
	never := make([]string, len(n.NeverConforming))
	for i, node := range n.NeverConforming {
		never[i] = node.Name
	}
	p.Section("Nodes: %s conforming", render.Thousands(n.Conforming))
	p.Fields(
		field("never conforming", never, p.Wide()),
		field("silent, of the state", n.Silent, p.Wide()),
		field("not in the state", n.NotInState, p.Wide()),
		render.Field{Name: "beyond the bounds", Value: optional(n.NotTold, "%s requests")},
	)
}

func field(name string, nodes []string, wide bool) render.Field {
	if len(nodes) == 0 {
		return render.Field{}
	}
	return render.Field{Name: name, Value: fmt.Sprintf("%s: %s", render.Thousands(len(nodes)), names(nodes, 0, wide))}
}

func (r *Report) notExamined(p *render.Page) {
	if r.Totals.NotExamined == 0 {
		return
	}
	p.Section("Not put to NodeRestriction: %s of %s", render.Thousands(r.Totals.NotExamined), render.Count(r.Totals.Writes, "write"))
	var rows [][]string
	for _, n := range r.NotExamined {
		what := Refusal{Verb: n.Verb, Group: n.Group, Resource: n.Resource, Subresource: n.Subresource}.question()
		rows = append(rows, []string{what, render.Thousands(n.Count), string(n.Why)})
	}
	p.Table(2, []string{"WRITE", "COUNT", "WHY"}, rows)
}

// Listing has a row for each different request that would be refused, was refused or is undecided, for each kubelet that does
// not conform, and for what is not known. The first row of a node that would be refused something has the node's name.
func (r *Report) Listing() render.Rows {
	all := render.Rows{
		Field: "wouldBeRefused", Columns: []string{"ANSWER", "NODE", "REQUEST", "CODE", "COUNT", "LAST", "IDENTITY", "WHY"},
	}
	add := func(answer, node, request, code string, count int, last, identity, why string) {
		all.Rows = append(all.Rows, render.Row{Cells: []string{answer, node, request, code, strconv.Itoa(count), last, identity, why}})
	}
	list := func(answer string, of []Refusal, more []Remainder, row func(Refusal, bool) []string) {
		for _, refusal := range of {
			cells := row(refusal, true)
			add(answer, refusal.Node, cells[1], cells[2], refusal.Count, cells[4], cells[5], cells[6])
		}
		for _, m := range more {
			request := Refusal{Group: m.Group, Resource: m.Resource, Subresource: m.Subresource}.question()
			add(answer, m.Node, request, string(m.Code), m.Count, "", "", "beyond the bound of the list")
		}
	}
	more := cmp.Or(r.More, &More{})
	list("would be refused", r.WouldBeRefused, more.WouldBeRefused, Refusal.wouldRow)
	named := map[string]bool{"": true}
	for i := range all.Rows {
		if node := all.Rows[i].Cells[1]; !named[node] {
			all.Rows[i].Name, named[node] = "node/"+node, true
		}
	}
	list("was refused", r.Refused, more.Refused, Refusal.refusedRow)
	list("undecided", r.Undecided, more.Undecided, Refusal.undecidedRow)
	for _, id := range r.Nonconforming {
		add("nonconforming", names(id.Nodes, id.MoreNodes, true), "", "", id.Count, "", id.Username, id.Why)
	}
	for _, n := range r.NotExamined {
		what := Refusal{Verb: n.Verb, Group: n.Group, Resource: n.Resource, Subresource: n.Subresource}.question()
		add("not examined", "", what, "", n.Count, "", "", string(n.Why))
	}
	for _, node := range r.Nodes.Silent {
		add("not seen", node, "", "", 0, "", "", "the log does not mention the node")
	}
	if r.Totals.BrokenLines > 0 {
		add("not read", "", "", "", r.Totals.BrokenLines, "", "", "broken lines")
	}
	return all
}
