package paths

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/junit"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

// maxMarkdown is how many characters a comment on GitHub may have. Some are left for what others add.
const maxMarkdown = 65536 - 512

// markdownCell bounds a text that comes from a cluster or a manifest.
const markdownCell = 300

// Markdown is a comment for a pull request, or the summary of a job. Rows that do not fit are counted.
func (r *DiffResult) Markdown() string {
	var b markdown
	icon := map[string]string{DiffWidened: "❌", DiffUndecided: "⚠️", DiffNotWidened: "✅"}[r.Verdict]
	b.line("### %s Attack paths: %s", icon, escaped(r.verdictText()))
	b.line("")
	for _, line := range r.totalLines(true) {
		b.line("%s  ", escaped(line))
	}
	tail := r.markdownTail()
	room := maxMarkdown - utf8.RuneCountInString(tail) - 512
	workloads, rest := splitWorkloads(r.Widened)
	named, _ := splitWorkloads(r.Expected)
	left := b.rows("New and changed workloads", append(workloads, named...), room)
	left += b.rows("Widens", rest, room)
	left += b.rows("Narrows", r.Narrowed, room)
	if left > 0 {
		b.line("")
		b.line("**%s more rows do not fit into a comment.** `-o json` has all of them.", render.Thousands(left))
	}
	return b.String() + tail
}

func (r *DiffResult) markdownTail() string {
	var b markdown
	const few = 10
	var changes, notes, missing []string
	for _, c := range r.Changes {
		text := c.Action + " " + code(c.Object.String())
		if at := fileLine(c.File, c.Line); at != "" {
			text += " at " + code(at)
		}
		changes = append(changes, text+escaped(strings.TrimSuffix(", "+c.Because, ", ")))
	}
	for _, n := range r.Notes {
		notes = append(notes, escaped(n))
	}
	for _, m := range r.Missing {
		missing = append(missing, escaped(m.Line()))
	}
	for _, part := range [...]struct {
		title string
		lines []string
	}{{"Changes", changes}, {"Notes", notes}, {"Not known: more may widen", missing}} {
		if len(part.lines) == 0 {
			continue
		}
		b.line("")
		b.line("<details><summary>%s (%s)</summary>", part.title, render.Thousands(len(part.lines)))
		b.line("")
		for _, line := range part.lines[:min(few, len(part.lines))] {
			b.line("- %s", line)
		}
		if more := len(part.lines) - few; more > 0 {
			b.line("- and %s more", render.Thousands(more))
		}
		b.line("")
		b.line("</details>")
	}
	return b.String()
}

type markdown struct {
	strings.Builder
	runes int
}

func (b *markdown) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	b.runes += utf8.RuneCountInString(text)
	b.WriteString(text)
}

// rows writes rows until there is no more room, and returns how many are left out.
func (b *markdown) rows(title string, rows []diffRow, room int) (left int) {
	if len(rows) == 0 {
		return 0
	}
	heading := fmt.Sprintf("\n#### %s (%s)\n", title, render.Thousands(len(rows)))
	for i := range rows {
		var row markdown
		row.row(&rows[i])
		if b.runes+row.runes+len(heading) > room {
			return len(rows) - i
		}
		if i == 0 {
			b.line("%s", heading)
		}
		b.line("%s", row.String())
	}
	return 0
}

func (b *markdown) row(r *diffRow) {
	b.line("<details><summary>%s → <b>%s</b>: %s → %s</summary>", code(holdingList(r.Starts, r.StartKind, false)),
		code(r.reachedText(false)), r.Before, r.After)
	b.line("")
	if r.Reason != "" {
		b.line("No finding: %s", escaped(r.Reason))
		b.line("")
	}
	const mostSteps = 30
	for i, step := range r.Path[:min(mostSteps, len(r.Path))] {
		b.line("%d. %s", i+1, markdownStep(step, r.placeText(i+1)))
	}
	if more := len(r.Path) - mostSteps; more > 0 {
		b.line("")
		b.line("… and %s more steps", render.Thousands(more))
	}
	b.line("")
	b.line("</details>")
}

func markdownStep(step attackpaths.Step, place string) string {
	text := fmt.Sprintf("**%s** %s → %s: %s", escaped(string(step.Technique)), code(holdingText(step.From)), code(holdingText(step.To)),
		escaped(step.Because))
	if step.GrantedBy != nil {
		text += " (" + code(step.GrantedBy.String()) + ")"
	}
	if step.DependsOn != "" {
		text += "; *depends on " + escaped(step.DependsOn) + "*"
	}
	if place != "" {
		text += " — " + code(place)
	}
	return text
}

// code shows a name as it is.
func code(text string) string { return "<code>" + escaped(text) + "</code>" }

// escaped writes text so that nothing in it is markup, a link or a mention: all that is not a letter, a
// digit, a space or harmless becomes a character reference.
func escaped(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range render.Printable(text) {
		if n++; n > markdownCell {
			b.WriteString("…")
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" ,;()/-→…", r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// junitKinds are the kinds of holdings, in the order of rows.
var junitKinds = []string{
	attackpaths.ClusterAdmin, attackpaths.Node, attackpaths.Secret, attackpaths.ServiceAccount, attackpaths.Namespace,
	attackpaths.User, attackpaths.Group, attackpaths.Pod,
}

// workloadStart stands for all kinds of workloads.
const workloadStart = "Workload"

// JUnit has a test case for each row that widens, which fails, and one for each kind of holdings for
// which nothing does. What could not be read is an error of a case of its own.
func (r *DiffResult) JUnit() any {
	s := junit.Suite{Name: "node-authorizer diff"}
	for _, start := range [...]string{workloadStart, attackpaths.Node, attackpaths.ServiceAccount} {
		for _, kind := range junitKinds {
			r.junitCases(&s, start, kind)
		}
	}
	complete := junit.Case{Class: "node-authorizer.diff", Name: "everything that paths depend on could be read"}
	if r.status() == command.StatusUndecided {
		complete.Error = &junit.Problem{Message: "more may widen than is seen", Type: DiffUndecided}
		for _, m := range r.Missing {
			complete.Error.Text += render.Printable(m.Line()) + "\n"
		}
	}
	s.Add(complete)
	return junit.Suites{Suite: s}
}

func (r *DiffResult) junitCases(s *junit.Suite, start, kind string) {
	class, what, noun := "node-authorizer.diff."+start, nounOf(kind), nounOf(start)
	if start == workloadStart {
		noun = "workload"
	}
	if kind == attackpaths.ClusterAdmin {
		what = "cluster-admin"
	}
	found := false
	for i := range r.Widened {
		row := &r.Widened[i]
		if (row.StartKind != start && !(start == workloadStart && row.ofWorkload())) || row.Kind != kind {
			continue
		}
		found = true
		c := junit.Case{
			Class: class,
			Name:  render.Printable(fmt.Sprintf("%s → %s", holdingList(row.Starts, row.StartKind, false), row.reachedText(false))),
			Failure: &junit.Problem{
				Message: fmt.Sprintf("%s → %s", row.Before, row.After), Type: DiffWidened, Text: render.Printable(row.sentence()),
			},
		}
		for _, p := range row.Places {
			if c.File == "" && p.File != "stdin" {
				c.File, c.Line = render.Printable(p.File), p.Line
			}
		}
		if !row.fails(r.FailOn) {
			c.Failure, c.Out = nil, c.Failure.Text
		}
		s.Add(c)
	}
	if !found {
		s.Add(junit.Case{Class: class, Name: fmt.Sprintf("no %s comes to reach more: %s", noun, what)})
	}
}

// SARIF has a result for each row that widens, under the rule of the last technique of its path, at the
// places in the manifests.
func (r *DiffResult) SARIF() any {
	run := pathsRun(r.Missing, nil, r.custom)
	for i := range r.Widened {
		run.Add(r.Widened[i].sarif(r.FailOn))
	}
	return run.Log()
}

func (r *diffRow) sarif(failOn string) sarif.Result {
	var last attackpaths.Code
	if len(r.Path) > 0 {
		last = r.Path[len(r.Path)-1].Technique
	}
	level := certaintyLevel(r.After)
	if !r.fails(failOn) {
		level = "note"
	}
	return sarif.Result{
		RuleID: string(last), Level: level, Message: sarif.Text(render.Printable(r.sentence())), Locations: r.locations(),
		Properties: map[string]string{"row": r.ID, "before": r.Before.String(), "after": r.After.String()},
	}
}

func (r *diffRow) sentence() string {
	return fmt.Sprintf("%s → %s: %s → %s.", holdingList(r.Starts, r.StartKind, false), r.reachedText(false), r.Before, r.After) +
		stepsText(r.Path, r.placeText)
}

// locations has the files that other tools can open first.
func (r *diffRow) locations() []sarif.Location {
	var all []sarif.Location
	for _, p := range r.Places {
		all = append(all, sarif.Place(p.File, p.Line, p.Object.String(), "resource"))
	}
	slices.SortStableFunc(all, func(a, b sarif.Location) int {
		return fileRank(a) - fileRank(b)
	})
	if len(all) > 0 {
		return all
	}
	return []sarif.Location{sarif.Place("", 0, r.Starts[0].String(), "resource")}
}

func fileRank(l sarif.Location) int {
	if l.PhysicalLocation == nil {
		return 1
	}
	return 0
}
