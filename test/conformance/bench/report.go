package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// section is the result of one part of a run.
type section struct {
	title string
	// method describes the measurement, in Markdown.
	method  string
	targets []target
	tables  []table
	// remarks interpret the figures, in Markdown.
	remarks []string
}

// target is a target of the project.
type target struct {
	what string
	// want and got are the figure aimed at and the figure measured.
	want, got string
	// missedBy is the factor between the two; at most 1 if the target is met.
	missedBy float64
	// why explains a missed target.
	why string
}

func (t target) met() bool { return t.missedBy <= 1 }

type table struct {
	caption string
	header  []string
	rows    [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// atLeast is a target for a ratio.
func atLeast(what string, bound float64, got spread, why string) target {
	return target{what: what, want: "at least " + times(bound), got: got.String(), missedBy: bound / got.median, why: why}
}

// atMost is a target for a figure that should be small.
func atMost(what string, bound, got float64, show func(float64) string, why string) target {
	t := target{what: what, want: "at most " + show(bound), got: show(got), why: why}
	if got > 0 {
		t.missedBy = got / bound
	}
	return t
}

func times(f float64) string {
	switch {
	case f >= 1000:
		return thousands(f) + "×"
	case f >= 20:
		return fmt.Sprintf("%.0f×", f)
	}
	return fmt.Sprintf("%.3g×", f)
}

// String shows a ratio with its lowest and highest round.
func (s spread) String() string {
	if s.low == s.high {
		return times(s.median)
	}
	return fmt.Sprintf("%s (%s … %s)", times(s.median), times(s.low), times(s.high))
}

func nanoseconds(f float64) string {
	switch {
	case f < 1000:
		return fmt.Sprintf("%.0f ns", f)
	case f < 1e6:
		return fmt.Sprintf("%.3g µs", f/1e3)
	case f < 1e9:
		return fmt.Sprintf("%.3g ms", f/1e6)
	}
	return fmt.Sprintf("%.3g s", f/1e9)
}

func megabytes(f float64) string {
	switch {
	case math.IsNaN(f):
		return "not measured"
	case f < 10e6:
		return fmt.Sprintf("%.2f MB", f/1e6)
	}
	return fmt.Sprintf("%s MB", thousands(math.Round(f/1e6)))
}

func percent(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) }

func count(f float64) string {
	if f < 0.05 {
		return "0"
	}
	return fmt.Sprintf("%.1f", f)
}

// thousands groups digits: 12,345.
func thousands(f float64) string {
	digits := fmt.Sprintf("%.0f", f)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// write renders a section.
func (s section) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n", s.title, s.method)
	if len(s.targets) > 0 {
		b.WriteByte('\n')
		writeTargets(&b, s.targets)
	}
	writeReasons(&b, s.targets)
	for _, t := range s.tables {
		fmt.Fprintf(&b, "\n%s\n\n", t.caption)
		writeRows(&b, t.header, t.rows)
	}
	for _, r := range s.remarks {
		fmt.Fprintf(&b, "\n%s\n", r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeTargets(b *strings.Builder, targets []target) {
	var rows [][]string
	for _, t := range targets {
		outcome := "met"
		if !t.met() {
			outcome = "**missed**"
		}
		rows = append(rows, []string{t.what, t.want, t.got, outcome})
	}
	writeRows(b, []string{"target", "wanted", "measured", ""}, rows)
}

// writeReasons says by how much targets are missed, and why, once for those that
// have a reason in common.
func writeReasons(b *strings.Builder, targets []target) {
	var reasons []string
	missed := map[string][]string{}
	for _, t := range targets {
		if t.met() {
			continue
		}
		if missed[t.why] == nil {
			reasons = append(reasons, t.why)
		}
		missed[t.why] = append(missed[t.why], fmt.Sprintf("*%s* by a factor of %.2f", t.what, t.missedBy))
	}
	for _, why := range reasons {
		fmt.Fprintf(b, "\nMissed: %s. %s\n", strings.Join(missed[why], "; "), why)
	}
}

func writeRows(b *strings.Builder, header []string, rows [][]string) {
	b.WriteString("| " + strings.Join(header, " | ") + " |\n|")
	for i := range header {
		if i == 0 {
			b.WriteString("---|")
		} else {
			b.WriteString("--:|")
		}
	}
	b.WriteByte('\n')
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
