package conformance

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestRandomHistories puts our graph through random additions, changes,
// deletions and re-creations, and compares it on the way and at the end with
// an in-tree graph that is built from the state reached.
func TestRandomHistories(t *testing.T) {
	b := readBudget(t)
	counts, divergences, events, stale := make(shares), 0, 0, 0
	for _, seed := range b.seeds(b.clusters) {
		h := newHistory(t, seed)
		for _, arrival := range h.arrivals() {
			events += len(arrival.events)
			wrong, inTreeWrong := h.follow(t, arrival, b.requests/10+1, counts)
			divergences, stale = divergences+wrong, stale+inTreeWrong
		}
		if divergences > maxDivergences {
			break
		}
	}
	counts.check(t, int(kubeversion.Latest))
	t.Logf("%d questions after %d events in %d histories: %d divergences", counts.total(), events, b.clusters, divergences)
	t.Logf("an in-tree graph that received the same events answers %d of them otherwise than the final state", stale)
}

// history is a sequence of events under one setting of gates.
type history struct {
	*generate.History
	seed     uint64
	features kubeversion.Features
	gates    map[string]bool
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	features, gates := randomFeatures(t, rand.New(rand.NewPCG(seed, 1)), kubeversion.Latest)
	if err := intree.SetGates(gates); err != nil {
		t.Fatal(err)
	}
	o, steps := generate.RandomHistory(seed)
	return &history{generate.NewHistory(seed, o, steps), seed, features, gates}
}

// arrival is one order in which the events of a history arrive.
type arrival struct {
	name   string
	events []generate.Event
}

func (h *history) arrivals() []arrival {
	return []arrival{
		{"history as it happened", h.Events},
		{"history in another order", h.Shuffled(h.seed)},
		{"history in a third order", h.Shuffled(h.seed + 1)},
		{"history seen with small gaps", h.Compressed(h.seed, 30)},
		{"history seen with big gaps", h.Compressed(h.seed, 80)},
	}
}

// stops is how often a history is stopped for questions.
const stops = 3

// follow applies the events to one graph of ours, and stops for questions. It
// returns the number of our divergences, and the number of divergences of an in-tree graph that
// received the same events.
func (h *history) follow(t *testing.T, a arrival, questions int, counts shares) (divergences, stale int) {
	t.Helper()
	g, watched, applied := graph.New(), intree.Watch(), 0
	for stop := 1; stop <= stops; stop++ {
		for until := len(a.events) * stop / stops; applied < until; applied++ {
			apply(g, a.events[applied])
			watched.Apply(a.events[applied])
		}
		c := h.State(a.events[:applied])
		tr := newLatestTrial(a.name, h.seed, h.features, h.gates, c, nodeauthz.New(g, h.features))
		divergences += tr.run(t, questions, counts)
		stale += h.countStale(t, tr, watched, questions)
	}
	return divergences + h.compareWhole(t, a, g), stale
}

// countStale puts the questions of a trial to an in-tree graph that was built by events.
func (h *history) countStale(t *testing.T, tr *trial, watched *intree.Watched, questions int) int {
	t.Helper()
	watchedAuthorizer, stale := intree.New(watched.Graph), 0
	requests := tr.questions(questions)
	for i, want := range tr.theirs(t, requests) {
		d, _, err := intree.Decide(watchedAuthorizer, &requests[i])
		if theirDecision(d, err) != want {
			stale++
		}
	}
	return stale
}

// compareWhole compares the graph that the events built with one of ours that
// is built from the final state: each node reaches the same objects by the same
// paths.
func (h *history) compareWhole(t *testing.T, a arrival, g *graph.Graph) int {
	t.Helper()
	fresh := graphOf(h.State(a.events))
	if got, want := g.Nodes(), fresh.Nodes(); !slices.Equal(got, want) {
		t.Errorf("%s: seed %d: nodes are %q, want those of the final state %q", a.name, h.seed, got, want)
		return 1
	}
	divergences := 0
	for _, node := range fresh.Nodes() {
		want, got := fresh.Reach(node), g.Reach(node)
		if slices.EqualFunc(want, got, sameReach) {
			continue
		}
		t.Errorf("%s: seed %d: node %s reaches (-in a graph of the final state, +in the graph built by events):\n%s",
			a.name, h.seed, node, cmp.Diff(want, got))
		divergences++
	}
	return divergences
}

func sameReach(a, b graph.Reached) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name &&
		slices.EqualFunc(a.Paths, b.Paths, slices.Equal[verdict.Path])
}
