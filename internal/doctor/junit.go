package doctor

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/junit"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// JUnit has a test case for each check. It fails if the check has a finding that fails the run, and is
// an error if it has none and could not be made. Other findings, the suppressed ones and the remedies are in
// its output.
func (r *Report) JUnit() any {
	s := junit.Suite{Name: "node-authorizer doctor"}
	for i := range r.Checks {
		s.Add(r.junitCase(&r.Checks[i]))
	}
	return junit.Suites{Suite: s}
}

func (r *Report) junitCase(check *CheckResult) junit.Case {
	c := junit.Case{Class: "node-authorizer.doctor", Name: string(check.ID) + ": " + check.Title}
	var failures, out strings.Builder
	failed := 0
	for _, f := range r.Findings {
		if r.checkOf[f.Code] != check.ID {
			continue
		}
		if r.FailOn != "" && f.Severity.AtLeast(r.FailOn) {
			failed++
			junitLine(&failures, f)
			if c.File == "" && f.Place.File != "stdin" {
				c.File, c.Line = render.Printable(f.Place.File), f.Place.Line
			}
		} else {
			out.WriteString("does not fail the run: ")
			junitLine(&out, f)
		}
		if f.Remedy != "" {
			fmt.Fprintf(&out, "fix of %s: %s\n", f.Code, junitText(f.Remedy))
		}
	}
	for _, s := range r.Suppressed {
		if r.checkOf[s.Code] == check.ID {
			fmt.Fprintf(&out, "suppressed (%s): ", render.Printable(s.Reason))
			junitLine(&out, s.Finding)
		}
	}
	if check.Status != Made {
		c.Error = junitLacks(check)
	}
	if failed > 0 {
		c.Failure = &junit.Problem{Message: render.Count(failed, "finding"), Type: "finding", Text: failures.String()}
		if c.Error != nil { // readers expect only one of the two
			out.WriteString(c.Error.Text)
			c.Error = nil
		}
	}
	c.Out = out.String()
	return c
}

func junitLacks(check *CheckResult) *junit.Problem {
	var lacks []string
	var provide strings.Builder
	for _, m := range check.Missing {
		lacks = append(lacks, render.Printable(m.Resource+": "+m.Reason))
		fmt.Fprintf(&provide, "not checked: %s\n", render.Printable(m.String()))
	}
	return &junit.Problem{Message: "could not be checked: " + strings.Join(lacks, "; "), Type: string(check.Status), Text: provide.String()}
}

func junitLine(into *strings.Builder, f finding.Finding) {
	text := f.String()
	if f.Subject != "" && !strings.Contains(text, f.Subject) {
		text += ", about " + f.Subject
	}
	fmt.Fprintln(into, render.Printable(text))
}

func junitText(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = render.Printable(line)
	}
	return strings.Join(lines, "\n  ")
}
