package cli

import (
	"encoding/xml"
	"fmt"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/render"
)

// The structs below are the part of JUnit's XML that build servers read.

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// junitKinds are the kinds of holdings, in the order of rows.
var junitKinds = []string{
	attackpaths.ClusterAdmin, attackpaths.Node, attackpaths.Secret, attackpaths.ServiceAccount, attackpaths.Namespace,
	attackpaths.User, attackpaths.Group, attackpaths.Pod,
}

// JUnit has a test case for each row that widens, which fails, and one for each kind of holdings for
// which nothing does. What could not be read is an error of a case of its own.
func (r *diffResult) JUnit() any {
	s := junitSuite{Name: "node-authorizer diff"}
	for _, start := range [...]string{attackpaths.Node, attackpaths.ServiceAccount} {
		for _, kind := range junitKinds {
			s.addKind(r, start, kind)
		}
	}
	complete := junitCase{Class: "node-authorizer.diff", Name: "everything that paths depend on could be read"}
	if r.Verdict == diffUndecided {
		s.Errors++
		complete.Error = &junitProblem{Message: "more may widen than is seen", Type: diffUndecided}
		for _, m := range r.Missing {
			complete.Error.Text += render.Printable(m.line()) + "\n"
		}
	}
	s.Cases = append(s.Cases, complete)
	s.Tests = len(s.Cases)
	return struct {
		XMLName xml.Name `xml:"testsuites"`
		Suite   junitSuite
	}{Suite: s}
}

func (s *junitSuite) addKind(r *diffResult, start, kind string) {
	class, what := "node-authorizer.diff."+start, nounOf(kind)
	if kind == attackpaths.ClusterAdmin {
		what = "cluster-admin"
	}
	found := false
	for i := range r.Widened {
		row := &r.Widened[i]
		if row.StartKind != start || row.Kind != kind {
			continue
		}
		found = true
		s.Failures++
		c := junitCase{
			Class: class, Name: render.Printable(fmt.Sprintf("%s → %s", holdingList(row.Starts, start, false), row.reachedText(false))),
			Failure: &junitProblem{
				Message: fmt.Sprintf("%s → %s", row.Before, row.After), Type: diffWidened, Text: render.Printable(row.sentence()),
			},
		}
		for _, p := range row.Places {
			if c.File == "" && p.File != "stdin" {
				c.File, c.Line = render.Printable(p.File), p.Line
			}
		}
		s.Cases = append(s.Cases, c)
	}
	if !found {
		s.Cases = append(s.Cases, junitCase{Class: class, Name: fmt.Sprintf("no %s comes to reach more: %s", nounOf(start), what)})
	}
}
