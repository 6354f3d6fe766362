package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Status is the status of a step.
type Status string

// The statuses of a step.
const (
	StatusDone Status = "done"
	// StatusToDo: there is evidence that the step is not done.
	StatusToDo Status = "todo"
	// StatusUnknown: the input does not show whether the step is done.
	StatusUnknown Status = "unknown"
)

// Plan lists the steps by which a cluster moves to Node authorization and NodeRestriction without
// disruption, with their status.
type Plan struct {
	// Origin describes the cluster.
	Origin string `json:"origin"`
	// Next is the number of the next step; 0 if all are done.
	Next int `json:"next"`
	// Steps are all steps, in order, also those that are done.
	Steps []Step `json:"steps"`
}

// DocumentKind implements [render.Document].
func (*Plan) DocumentKind() string { return "MigrationPlan" }

// Step is one change. It does not disrupt the cluster, and it can be undone.
type Step struct {
	// Number counts from 1. ID is stable across releases.
	Number int    `json:"number"`
	ID     string `json:"id"`
	// Title is the step in a few words, and Why says what it is for.
	Title string `json:"title"`
	Why   string `json:"why"`
	// Needs are the numbers of the steps that must be done before.
	Needs []int `json:"needs,omitempty"`
	// Do are the remaining actions; empty for a step that is done.
	Do []Action `json:"do,omitempty"`
	// Check says whether the step is done.
	Check Check `json:"check"`
}

// Action is one thing to do.
type Action struct {
	// Text describes the action in one line.
	Text string `json:"text"`
	// Commands are lines to paste into a shell; Undo are lines that undo them.
	Commands []string `json:"commands,omitempty"`
	Undo     []string `json:"undo,omitempty"`
}

// Check is the result of checking whether a step is done.
type Check struct {
	// Status is the status of the step.
	Status Status `json:"status"`
	// Evidence are the facts in this cluster that show it, one line each.
	Evidence []string `json:"evidence"`
}

// planner makes the plan of one cluster.
type planner struct {
	*examination
	setups []setup
	audit  *Audit
}

// step is a row of the table of steps: needs are the IDs of others.
type step struct {
	id, title, why string
	needs          []string
	plan           func(*planner) (Check, []Action)
}

// IDs of the steps.
const (
	stepRecord    = "record"
	stepAuthorize = "authorize"
	stepIdentify  = "identify"
	stepWatch     = "watch"
	stepWithdraw  = "withdraw"
	stepRestrict  = "restrict"
	stepCleanUp   = "clean-up"
)

// steps returns the steps of every plan, in order. The Node authorizer is enabled before rights are
// removed, because it only adds rights. Rights that all nodes share are removed when the log shows
// that no node needs them. NodeRestriction limits only users that are nodes, so it is enabled when
// all kubelets authenticate as nodes.
func steps() []step {
	return []step{
		{
			id: stepRecord, title: "Record what kubelets ask", plan: (*planner).record,
			why: "the audit log is what shows that nothing will be refused, before anything is taken away",
		},
		{
			id: stepAuthorize, title: "Ask the Node authorizer before RBAC", plan: (*planner).authorize,
			why: "it allows nodes what their own pods need and refuses nothing, so that nobody notices; RBAC still allows the same",
		},
		{
			id: stepIdentify, title: "Give every kubelet the identity of its node", needs: []string{stepAuthorize},
			plan: (*planner).identify,
			why:  "only user system:node:NAME in group system:nodes is a node to the Node authorizer and NodeRestriction",
		},
		{
			id: stepWatch, title: "Watch until nothing would be refused", needs: []string{stepRecord, stepIdentify}, plan: (*planner).watch,
			why: "requests that still depend on rights that all nodes share fail from the next step on",
		},
		{
			id: stepWithdraw, title: "Take away the rights that all nodes share", needs: []string{stepAuthorize, stepWatch},
			plan: (*planner).withdraw,
			why:  "as long as a binding gives every node what system:node has, the Node authorizer's refusals mean nothing",
		},
		{
			id: stepRestrict, title: "Restrict what nodes write", needs: []string{stepIdentify}, plan: (*planner).restrict,
			why: "the Node authorizer says which objects a node may write, NodeRestriction what: " +
				"its own Node, its own pods, its own certificates",
		},
		{
			id: stepCleanUp, title: "Take away what else was left", needs: []string{stepWithdraw}, plan: (*planner).cleanUp,
			why: "every right that nodes or everyone have by RBAC is a way round the Node authorizer",
		},
	}
}

// MakePlan returns the plan of a cluster. The report must be about the same cluster; audit is the
// report of its audit log, or nil.
func MakePlan(c *Cluster, report *Report, audit *Audit) *Plan {
	p := &planner{
		examination: &examination{cluster: c, report: report, met: map[CheckID][]Missing{}},
		setups:      c.setups(), audit: audit,
	}
	plan := &Plan{Origin: c.Origin}
	numbers := map[string]int{}
	for i, row := range steps() {
		numbers[row.id] = i + 1
		check, do := row.plan(p)
		s := Step{Number: i + 1, ID: row.id, Title: row.title, Why: row.why, Check: check}
		if check.Status != StatusDone {
			s.Do = do
		}
		for _, id := range row.needs {
			s.Needs = append(s.Needs, numbers[id])
		}
		plan.Steps = append(plan.Steps, s)
	}
	plan.Next = plan.next()
	return plan
}

// next returns the first step to do, or else the first step with an unknown status. Steps that it
// needs come before it.
func (p *Plan) next() int {
	for _, status := range []Status{StatusToDo, StatusUnknown} {
		for i := range p.Steps {
			if p.Steps[i].Check.Status == status {
				return p.firstOf(&p.Steps[i])
			}
		}
	}
	return 0
}

// firstOf returns the first step that must be done before a step, or the step itself.
func (p *Plan) firstOf(s *Step) int {
	for _, number := range s.Needs {
		if before := &p.Steps[number-1]; before.Check.Status != StatusDone {
			return p.firstOf(before)
		}
	}
	return s.Number
}

// Complete reports whether every step is done.
func (p *Plan) Complete() bool { return p.Next == 0 }

// Open reports whether there is a step to do. If there is none and the plan is not complete, the
// status of some steps is unknown.
func (p *Plan) Open() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Check.Status == StatusToDo })
}

func (p *Plan) Text(page *render.Page) {
	page.Section("Move to Node authorization and NodeRestriction: %s", p.Origin)
	if p.Complete() {
		page.Line("  %s", render.Good.In("all steps are done"))
	} else {
		page.Line("  go on with step %d: %s", p.Next, p.Steps[p.Next-1].Title)
	}
	unknown := 0
	for i := range p.Steps {
		if p.Steps[i].Check.Status == StatusUnknown {
			unknown++
		}
	}
	if unknown > 0 {
		page.Line("  %s", render.Unsure.In(fmt.Sprintf("of %s it is not known whether it is done", render.Count(unknown, "step"))))
	}
	for i := range p.Steps {
		p.Steps[i].text(page, p.Next)
	}
}

func (s *Step) text(page *render.Page, next int) {
	status, title, after := s.Check.Status, fmt.Sprintf("%d. %s", s.Number, s.Title), ""
	if s.Number == next {
		title += "  <- next"
	}
	if status != StatusDone && len(s.Needs) > 0 {
		numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Needs), " ", " and "), "[]")
		after = fmt.Sprintf(", after %s %s", render.Plural(len(s.Needs), "step", "steps"), numbers)
	}
	page.Section("%s", title)
	page.Line("   %s%s", styleOf(status == StatusDone, status == StatusToDo).In(string(status)), after)
	if status != StatusDone || page.Wide() {
		page.Line("   %s", render.Faint.In(s.Why))
	}
	for _, line := range s.Check.Evidence {
		page.Line("   - %s", line)
	}
	for _, action := range s.Do {
		page.Line("   * %s", action.Text)
		for _, command := range action.Commands {
			page.Command("       %s", command)
		}
		if len(action.Undo) > 0 {
			page.Line("     %s", render.Faint.In("to take it back:"))
		}
		for _, command := range action.Undo {
			page.Command("       %s", command)
		}
	}
}
