package conformance

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
)

// The size and seeds of the survey are fixed, so that its result is deterministic.
const (
	surveyClusters = 60
	surveyRequests = 3000
)

// survey holds the in-tree answers of every minor to the same questions.
type survey struct {
	minors  []kubeversion.Minor
	oracles map[kubeversion.Minor]oracle
	known   map[kubeversion.Minor]map[string]protocol.Gate
	asked   int

	changes map[change]*difference
	effects map[effect]map[kubeversion.Minor]*difference
}

// change is a difference between a minor and the one before, both with their
// default gates.
type change struct {
	minor     kubeversion.Minor
	object    string
	outcome   outcome
	cause     string
	causeRank int
}

// effect is the effect of turning a gate on.
type effect struct {
	gate    kubeversion.Gate
	object  string
	outcome outcome
}

// outcome is "allowed" or "refused".
type outcome string

// difference has the verbs of the questions with the same difference, and the
// simplest of the questions.
type difference struct {
	verbs   []string
	example generate.Request
}

func (d *difference) add(r *generate.Request) {
	if i, found := slices.BinarySearch(d.verbs, r.Verb); !found {
		d.verbs = slices.Insert(d.verbs, i, r.Verb)
	}
	if d.example.User == "" || simplicity(r, &d.example) < 0 {
		d.example = *r
	}
}

// simplicity orders questions for examples: few groups and selectors, short.
func simplicity(a, b *generate.Request) int {
	return cmp.Or(
		cmp.Compare(len(a.FieldSelector), len(b.FieldSelector)),
		cmp.Compare(len(a.String()), len(b.String())),
		strings.Compare(a.String(), b.String()))
}

func newSurvey(t *testing.T) *survey {
	t.Helper()
	s := &survey{
		minors:  kubeversion.Minors(),
		oracles: make(map[kubeversion.Minor]oracle),
		known:   make(map[kubeversion.Minor]map[string]protocol.Gate),
		changes: make(map[change]*difference),
		effects: make(map[effect]map[kubeversion.Minor]*difference),
	}
	for _, m := range s.minors {
		s.oracles[m] = startOracle(t, m)
		s.known[m] = s.oracles[m].gates(t, gateNames())
	}
	for seed := range uint64(surveyClusters) {
		s.cluster(t, seed+1)
	}
	return s
}

// answers are the answers of one minor to the questions about one cluster.
type answers struct {
	byDefault []protocol.Decision
	// older is what the minor says about the state that the minor before can
	// hold.
	older []protocol.Decision
	// flipped has one gate at a time not at its default.
	flipped map[kubeversion.Gate][]protocol.Decision
}

func (s *survey) cluster(t *testing.T, seed uint64) {
	t.Helper()
	c := generate.New(seed, generate.RandomOptions(seed))
	asker := generate.NewAsker(seed, c)
	requests := make([]generate.Request, surveyRequests)
	for i := range requests {
		requests[i] = asker.Next()
	}
	s.asked += len(requests)
	var before *answers
	for _, m := range s.minors {
		now := s.ask(t, m, c, requests)
		s.noteEffects(m, requests, now)
		if before != nil {
			s.noteChanges(m, requests, before, now)
		}
		before = now
	}
}

func (s *survey) ask(t *testing.T, m kubeversion.Minor, c *generate.Cluster, requests []generate.Request) *answers {
	t.Helper()
	defaults := kubeversion.For(m)
	put := func(state *generate.Cluster, f kubeversion.Features) []protocol.Decision {
		s.oracles[m].load(t, state, settings(f))
		return s.oracles[m].decide(t, requests)
	}
	a := &answers{byDefault: put(served(c, defaults), defaults), flipped: make(map[kubeversion.Gate][]protocol.Decision)}
	if m > kubeversion.Oldest {
		a.older = put(served(c, kubeversion.For(m-1)), defaults)
	}
	for _, gate := range kubeversion.Gates() {
		if !defaults.Settable(gate) {
			continue
		}
		f, err := defaults.With(gate, !defaults.Enabled(gate))
		if err != nil {
			t.Fatal(err)
		}
		a.flipped[gate] = put(served(c, f), f)
	}
	return a
}

func (s *survey) noteEffects(m kubeversion.Minor, requests []generate.Request, a *answers) {
	for gate, flipped := range a.flipped {
		on, off := flipped, a.byDefault
		if kubeversion.For(m).Enabled(gate) {
			on, off = off, on
		}
		for i := range requests {
			if on[i] == off[i] {
				continue
			}
			e := effect{gate, objectOf(&requests[i]), outcomeOf(on[i])}
			if s.effects[e] == nil {
				s.effects[e] = make(map[kubeversion.Minor]*difference)
			}
			if s.effects[e][m] == nil {
				s.effects[e][m] = &difference{}
			}
			s.effects[e][m].add(&requests[i])
		}
	}
}

func (s *survey) noteChanges(m kubeversion.Minor, requests []generate.Request, before, now *answers) {
	for i := range requests {
		if before.byDefault[i] == now.byDefault[i] {
			continue
		}
		c := change{minor: m, object: objectOf(&requests[i]), outcome: outcomeOf(now.byDefault[i])}
		c.cause, c.causeRank = causeOf(i, m, before, now)
		if s.changes[c] == nil {
			s.changes[c] = &difference{}
		}
		s.changes[c].add(&requests[i])
	}
}

// causeOf finds what makes minor m answer question i otherwise than the one
// before: a gate whose default changed and that, set as in the other minor,
// makes both agree; else the objects and fields that came with the minor; else
// the rules.
func causeOf(i int, m kubeversion.Minor, before, now *answers) (cause string, rank int) {
	for _, gate := range kubeversion.Gates() {
		if kubeversion.For(m).Enabled(gate) == kubeversion.For(m-1).Enabled(gate) {
			continue
		}
		asBefore, inNow := now.flipped[gate]
		asNow, inBefore := before.flipped[gate]
		if inNow && asBefore[i] == before.byDefault[i] || inBefore && asNow[i] == now.byDefault[i] {
			return "gate `" + string(gate) + "`", 0
		}
	}
	if now.older[i] == before.byDefault[i] {
		return "objects or fields that this minor adds", 1
	}
	return "the rules", 2
}

// settings returns every gate that the minor lets one set, with its value.
func settings(f kubeversion.Features) map[string]bool {
	gates := map[string]bool{"ClusterTrustBundleProjection": f.Enabled(kubeversion.ClusterTrustBundle)}
	for _, gate := range kubeversion.Gates() {
		if f.Settable(gate) {
			gates[string(gate)] = f.Enabled(gate)
		}
	}
	return gates
}

// objectOf names what a question is about: "pods/status", "leases.coordination.k8s.io".
func objectOf(r *generate.Request) string {
	if !r.ResourceRequest() {
		return r.Path
	}
	name := r.Resource
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	if r.Group != "" {
		name += "." + r.Group
	}
	return name
}

func outcomeOf(d protocol.Decision) outcome {
	if d == protocol.Allow {
		return "allowed"
	}
	return "refused"
}
