package evaluate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/quarantine"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// requestsPerCluster is the number of requests to each random cluster. Every fourth is a write that
// admission decides too.
const requestsPerCluster = 2000

// tally counts the answers, so that a campaign shows that it tried what matters.
type tally struct {
	requests, allowed, refused, taken, observed, writes, writesTaken int
}

// Whatever NodeScopes and Quarantines there are, nobody is allowed what was refused without them, and
// those in the mode Observe change no answer. CONTAINMENT_REQUESTS sets the number of random requests.
func TestContainmentNeverAllows(t *testing.T) {
	wanted := 60_000
	if text := os.Getenv("CONTAINMENT_REQUESTS"); text != "" {
		var err error
		if wanted, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var n tally
	for seed := uint64(1); n.requests < wanted && !t.Failed(); seed++ {
		newContained(t, seed).compare(t, &n)
	}
	t.Logf("%d requests, of which %d were allowed and %d refused without containment; %d of the allowed ones refused with it, "+
		"%d observed; %d writes, of which %d refused with it only",
		n.requests, n.allowed, n.refused, n.taken, n.observed, n.writes, n.writesTaken)
	for what, count := range map[string]int{
		"was allowed before": n.allowed, "was refused before": n.refused, "was refused by containment": n.taken,
		"was observed": n.observed, "was refused in admission only": n.writesTaken,
	} {
		if count < n.requests/1000 {
			t.Errorf("only %d requests of %d are such that one %s: the campaign shows nothing about them", count, n.requests, what)
		}
	}
}

// contained is a random cluster with and without containment.
type contained struct {
	*randomContainment
	without, with *evaluate.Evaluator
	observes      bool
}

func newContained(t *testing.T, seed uint64) *contained {
	t.Helper()
	c := &contained{randomContainment: newRandomContainment(seed)}
	c.observes = c.chance(4)
	state, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(c.cluster(t))})
	if err != nil {
		t.Fatal(err)
	}
	features := kubeversion.For(kubeversion.Latest)
	if c.without, err = evaluate.New(t.Context(), state, evaluate.Options{Features: features}); err != nil {
		t.Fatal(err)
	}
	var policy atomic.Pointer[nodescope.Policy]
	current, _ := nodescope.NewPolicy(c.scopes(c.observes))
	policy.Store(current)
	set := &quarantine.Set{}
	now := time.Unix(1_800_000_000, 0)
	if !c.observes {
		set, _ = quarantine.NewSet(c.quarantines(now), 2, now)
	}
	c.with, err = evaluate.New(t.Context(), state, evaluate.Options{Features: features, Containment: evaluate.Containment{
		Scopes: &policy, Quarantines: func() (*quarantine.Set, error) { return set, nil }, Now: func() time.Time { return now },
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *contained) compare(t *testing.T, n *tally) {
	t.Helper()
	for i := range requestsPerCluster {
		n.requests++
		req := c.request()
		before, beforeErr := c.without.Authorize(t.Context(), req)
		after, afterErr := c.with.Authorize(t.Context(), req)
		c.check(t, req, answerOf(before, beforeErr), answerOf(after, afterErr))
		n.count(before, after)
		nodeBefore, nodeBeforeErr := c.without.AuthorizeNode(t.Context(), req)
		nodeAfter, nodeAfterErr := c.with.AuthorizeNode(t.Context(), req)
		c.check(t, req, answerOf(nodeBefore, nodeBeforeErr), answerOf(nodeAfter, nodeAfterErr))
		if i%4 == 0 {
			c.compareWrite(t, n)
		}
	}
}

func (n *tally) count(before, after decision.Opinion) {
	switch {
	case before.Decision != verdict.Allow:
		n.refused++
	case after.Decision != verdict.Allow:
		n.taken++
		fallthrough
	default:
		n.allowed++
	}
	if after.Scope != nil && !after.Scope.Enforced {
		n.observed++
	}
}

func (c *contained) compareWrite(t *testing.T, n *tally) {
	t.Helper()
	n.writes++
	req := c.write()
	before, after := c.without.Admit(t.Context(), req), c.with.Admit(t.Context(), req)
	c.check(t, req, writeAnswer(before), writeAnswer(after))
	if before.Decision == verdict.Allow && after.Decision != verdict.Allow {
		n.writesTaken++
	}
}

// answer is what the API server learns.
type answer struct {
	decision verdict.Decision
	code     verdict.Code
	reason   string
	err      error
}

func answerOf(o decision.Opinion, err error) answer { return answer{o.Decision, o.Code, o.Reason, err} }

func writeAnswer(a evaluate.Admission) answer {
	err := a.Contained
	if err == nil {
		err = a.Err
	}
	return answer{a.Decision, a.Code, a.Reason.Message, err}
}

func (c *contained) check(t *testing.T, req any, before, after answer) {
	t.Helper()
	switch {
	case after.decision == verdict.Allow && before.decision != verdict.Allow:
		t.Errorf("%s: allowed (%s), and %s without containment (%s)", c.place(t, req), after.code, before.decision, before.code)
	case c.observes && (before.decision != after.decision || before.code != after.code || before.reason != after.reason ||
		fmt.Sprint(before.err) != fmt.Sprint(after.err)):
		t.Errorf("%s: %+v in the mode Observe, and %+v without NodeScopes", c.place(t, req), after, before)
	case after.decision != before.decision && after.decision != verdict.Deny:
		t.Errorf("%s: containment turns %+v into %+v, which is neither the same nor a refusal", c.place(t, req), before, after)
	}
}

func (c *contained) place(t *testing.T, req any) string {
	t.Helper()
	text, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("seed %d, %s", c.seed, text)
}
