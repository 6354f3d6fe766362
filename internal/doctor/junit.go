package doctor

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/render"
)

// The structs below are the part of JUnit's XML that build servers read.

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   junitSuite
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// JUnit has a test case for each check. It fails if the check has a finding that fails the run, and is
// skipped if the check could not be made and has none. Other findings, the suppressed ones and the
// remedies are in its output.
func (r *Report) JUnit() any {
	s := junitSuite{Name: "node-authorizer doctor", Tests: len(r.Checks)}
	for i := range r.Checks {
		c := r.junitCase(&r.Checks[i])
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
		s.Cases = append(s.Cases, c)
	}
	return junitSuites{Suite: s}
}

func (r *Report) junitCase(check *CheckResult) junitCase {
	c := junitCase{Class: "node-authorizer.doctor", Name: string(check.ID) + ": " + check.Title}
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
	lacks := junitLacks(check, &out)
	switch {
	case failed > 0:
		c.Failure = &junitFailure{Message: render.Count(failed, "finding"), Type: "finding", Text: failures.String()}
	case lacks != "":
		c.Skipped = &junitSkipped{Message: "could not be checked: " + lacks}
	}
	c.Out = out.String()
	return c
}

// junitLacks returns what a check lacks in one line, and writes how to provide it.
func junitLacks(check *CheckResult, out *strings.Builder) string {
	if check.Status == Made {
		return ""
	}
	var lacks []string
	for _, m := range check.Missing {
		lacks = append(lacks, render.Printable(m.Resource+": "+m.Reason))
		fmt.Fprintf(out, "not checked: %s\n", render.Printable(m.String()))
	}
	return strings.Join(lacks, "; ")
}

func junitLine(into *strings.Builder, f finding.Finding) {
	text := f.String()
	if f.Subject != "" && !strings.Contains(text, f.Subject) {
		text += ", about " + f.Subject
	}
	fmt.Fprintln(into, render.Printable(text))
}

// junitText makes each line of a text printable.
func junitText(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = render.Printable(line)
	}
	return strings.Join(lines, "\n  ")
}
