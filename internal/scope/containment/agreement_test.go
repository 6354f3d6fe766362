package containment_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
)

// agreementRounds is how often servers are brought apart.
const agreementRounds = 200

// TestServersAgreeOnWhichQuarantinesCount makes eight Quarantines within one second, which two or three servers see in
// different orders and batches, with the statuses that each of them writes meanwhile. Then all refuse the same
// nodes, as many as the limit allows, and the statuses say so and stay as they are. In half of the rounds, the servers
// count the nodes at other times, so that they have other limits meanwhile.
func TestServersAgreeOnWhichQuarantinesCount(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	rounds := make(chan uint64)
	for range 16 { // a round mostly waits
		running.Go(func() {
			for seed := range rounds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { newRound(t, seed).run() })
			}
		})
	}
	for seed := range uint64(agreementRounds) {
		rounds <- seed
	}
	close(rounds)
	running.Wait()
}

// round is one cluster with two or three servers.
type round struct {
	t *testing.T
	*cluster
	random *rand.Rand
	// limit is the limit of all servers in the end.
	limit   int
	moves   bool
	servers []*replica
	// nodes are those that Quarantines name, by the name of the Quarantine.
	nodes map[string]string
	// marks is how many others there are.
	marks int
}

// replica is a server whose connection to the API server a test delays.
type replica struct {
	*containment.Live
	*delays
	*limit
	// listed is how many Quarantines there were when it started.
	listed int
	stop   func()
}

func newRound(t *testing.T, seed uint64) *round {
	random := rand.New(rand.NewPCG(seed, 1))
	r := &round{
		t: t, cluster: newCluster(t), random: random, limit: 1 + random.IntN(4), moves: seed%2 == 0, nodes: map[string]string{},
		servers: make([]*replica, 2+seed%3/2),
	}
	r.writeRecord("")
	for i := range r.servers {
		r.start(i)
	}
	return r
}

// start starts a server, and waits until it knows all objects.
func (r *round) start(i int) {
	s := &replica{delays: newDelays(), limit: newLimit(r.limit, true), listed: len(r.nodes)}
	config := r.Config()
	config.Wrap(s.wrap)
	var err error
	s.Live, err = containment.New(containment.Options{
		Cluster: config, Quarantines: true, MaxQuarantinedNodes: s.get, Record: true, Interval: time.Millisecond,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	s.stop = func() {
		stop()
		running.Wait()
	}
	r.t.Cleanup(s.stop)
	r.servers[i] = s
	synced(r.t, s.Live)
}

func (r *round) run() {
	for i := range 8 {
		name := fmt.Sprintf("q-%06x", r.random.IntN(1<<24))
		r.nodes[name] = fmt.Sprint("worker-", i%(6+r.random.IntN(3)))
		r.put(quarantinePath(name), &v1alpha1.Quarantine{ObjectMeta: age(0), Spec: v1alpha1.QuarantineSpec{Node: r.nodes[name]}})
		r.disturb()
	}
	for range 8 {
		r.disturb()
	}
	for _, s := range r.servers {
		s.set(r.limit, true)
		s.let(unlimited, unlimited)
	}
	r.expectAgreement()
}

// disturb lets one server see or write something, or restarts it.
func (r *round) disturb() {
	i := r.random.IntN(len(r.servers))
	switch s := r.servers[i]; r.random.IntN(12) {
	case 0:
		s.stop()
		r.start(i)
	case 1:
		if r.moves {
			s.set(1+r.random.IntN(4), true)
		}
	case 2, 3, 4:
		s.let(r.random.IntN(4), r.random.IntN(3))
		r.awaitCompiled(s)
	default:
		s.let(r.random.IntN(4), r.random.IntN(2))
	}
}

// awaitCompiled waits until a server enforces the changes that it has seen.
func (r *round) awaitCompiled(s *replica) {
	eventually(r.t, "what was seen is enforced", func() bool { return s.known() >= s.listed+s.seen() })
}

// known returns how many Quarantines a server knows.
func (s *replica) known() (n int) {
	for _, stats := range s.Stats() {
		for _, objects := range stats.Objects {
			n += objects
		}
	}
	return n
}

// expectAgreement waits until the servers agree, and checks that they then do so for good. They do when nothing has been
// written since all knew the same.
func (r *round) expectAgreement() {
	r.t.Helper()
	for was, is := "", "it is not known"; was != is; {
		r.settle()
		eventuallyNothing(r.t, "the servers agree", r.disagreement)
		was, is = is, r.statuses()
	}
	was := r.statuses()
	r.settle()
	if is, why := r.statuses(), r.disagreement(); is != was || why != "" {
		r.t.Errorf("the statuses were\n%s\nand are\n%s\n%s", was, is, why)
	}
}

// settle waits until all servers know all objects, and have no older decisions to write.
func (r *round) settle() {
	r.t.Helper()
	mark := fmt.Sprint("mark-", r.marks)
	r.put(quarantinePath(mark), &v1alpha1.Quarantine{Spec: v1alpha1.QuarantineSpec{Credential: "JTI=" + mark}})
	r.marks++
	for _, s := range r.servers {
		eventually(r.t, "the mark is known", func() bool { return s.known() == len(r.nodes)+r.marks })
		eventually(r.t, "nothing is written", s.idle)
	}
	r.expectStatus(quarantinePath(mark), "Accepted 1")
}

// disagreement describes the first difference from the expected state; empty if there is none.
func (r *round) disagreement() string {
	all, refused := map[string]bool{}, map[string]bool{}
	for name, node := range r.nodes {
		first := quarantined(r.servers[0].Live, node)
		for _, s := range r.servers[1:] {
			if other := quarantined(s.Live, node); other != first {
				return fmt.Sprintf("%s: %q and %q", node, first, other)
			}
		}
		want := "LimitExceeded 1"
		if all[node] = true; first != "" {
			refused[node], want = true, "Accepted 1"
		}
		if got := r.accepted(quarantinePath(name)); got != want {
			return fmt.Sprintf("%s of %s is %q, want %q", name, node, got, want)
		}
	}
	kept, _ := strconv.Atoi(r.record())
	least, most := min(r.limit, len(all)), max(r.limit, kept)
	if !r.moves {
		most = least
	}
	if len(refused) < least || len(refused) > most {
		return fmt.Sprintf("%d nodes are quarantined, want %d to %d", len(refused), least, most)
	}
	return ""
}

// statuses returns the statuses of all Quarantines, with their versions.
func (r *round) statuses() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		var q v1alpha1.Quarantine
		if _, err := r.Get(quarantinePath(name), &q); err != nil {
			r.t.Error(err)
		}
		all = append(all, fmt.Sprint(name, " of ", r.nodes[name], ": ", r.accepted(quarantinePath(name)), ", version ", q.ResourceVersion))
	}
	return strings.Join(all, "\n")
}
