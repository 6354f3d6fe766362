package paths

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/junit"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

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
