package freshness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/freshness"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// all sends requests to an evaluator at once. The returned function waits for all answers
// and returns how many were allowed.
func all(t *testing.T, evaluate decision.Authorize, requests []*access.Request) func() (allowed int) {
	var running sync.WaitGroup
	opinions := make([]decision.Opinion, len(requests))
	for i, req := range requests {
		running.Go(func() {
			var err error
			if opinions[i], err = evaluate(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Wait()
	return func() (allowed int) {
		running.Wait()
		for _, o := range opinions {
			if o.Decision == verdict.Allow {
				allowed++
			}
		}
		return allowed
	}
}

func times(n int, req func(i int) *access.Request) []*access.Request {
	requests := make([]*access.Request, n)
	for i := range requests {
		requests[i] = req(i)
	}
	return requests
}

// Any number of identical requests causes one probe per change.
func TestIdenticalRequestsShareOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, changes = 5000, 10
		c, o := newCluster(), &outcomes{}
		w := freshness.New(c, freshness.Options{Waited: o.waited, MaxPerNode: requests, MaxTotal: requests})
		defer w.Stop()
		ask := times(requests, func(int) *access.Request { return get("worker", "db") })
		answered := all(t, w.Authorize(limit, c.evaluate, c.probe), ask)
		for range changes {
			c.relate("worker", "else")
			synctest.Wait()
		}
		if n := c.probed.Load(); n != changes {
			t.Errorf("%d changes caused %d probes", changes, n)
		}
		if n := c.asked.Load(); n != requests {
			t.Errorf("the evaluator was asked %d times before the relation arrived, want once for each of %d", n, requests)
		}
		c.relate("worker", "db")
		if n := answered(); n != requests {
			t.Errorf("%d of %d allowed", n, requests)
		}
		o.want(t, map[string]int{"authorize arrived": requests})
	})
}

func TestAChangeProbesOnlyTheQuestionsOfItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := freshness.New(c, freshness.Options{})
		defer w.Stop()
		answered := all(t, w.Authorize(limit, c.evaluate, c.probe), []*access.Request{get("worker", "db")})
		for i := range 1000 {
			c.relate(fmt.Sprintf("node-%d", i), "db")
		}
		synctest.Wait()
		if n := c.probed.Load(); n != 0 {
			t.Errorf("%d probes, want none", n)
		}
		answered()
	})
}

// Changes that arrive during a probe are handled in one batch.
func TestChangesDuringAProbeAreOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := freshness.New(c, freshness.Options{})
		defer w.Stop()
		hold := make(chan struct{})
		probe := func(req *access.Request) bool {
			<-hold
			return c.probe(req)
		}
		answered := all(t, w.Authorize(limit, c.evaluate, probe), []*access.Request{get("worker", "db")})
		c.notify("worker")
		synctest.Wait()
		for range 1000 {
			c.notify("worker")
		}
		close(hold)
		synctest.Wait()
		if n := c.probed.Load(); n != 2 { // the probe in flight, and one for the later changes
			t.Errorf("%d probes, want 2", n)
		}
		answered()
	})
}

func TestTooManyWaitingRequestsAreAnsweredAtOnce(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		opts   freshness.Options
		node   func(i int) string
		waits  int
		others int // requests of another node that may still wait
	}{
		{"of one node", freshness.Options{MaxPerNode: 10}, func(int) string { return "worker" }, 10, 1},
		{
			"of all nodes",
			freshness.Options{MaxTotal: 10},
			func(i int) string { return fmt.Sprintf("node-%d", i) }, 10, 0,
		},
		{"of one node, by default", freshness.Options{}, func(int) string { return "worker" }, freshness.DefaultMaxPerNode, 1},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const requests = 1000
				c, o := newCluster(), &outcomes{}
				tc.opts.Waited = o.waited
				w := freshness.New(c, tc.opts)
				defer w.Stop()
				evaluate := w.Authorize(limit, c.evaluate, c.probe)
				ask := times(requests, func(i int) *access.Request { return get(tc.node(i), fmt.Sprintf("secret-%d", i)) })
				answered := all(t, evaluate, ask)
				o.want(t, map[string]int{"authorize limited": requests - tc.waits})
				other := all(t, evaluate, []*access.Request{get("other", "db")})
				answered()
				other()
				o.want(t, map[string]int{
					"authorize limited": requests - tc.waits + 1 - tc.others,
					"authorize expired": tc.waits + tc.others,
				})
				// Later requests may wait again.
				all(t, evaluate, []*access.Request{get("worker", "db")})()
				o.want(t, map[string]int{
					"authorize limited": requests - tc.waits + 1 - tc.others,
					"authorize expired": tc.waits + tc.others + 1,
				})
			})
		})
	}
}

// TestServiceAccountsTakePartOfThePlaces: whoever may create SubjectAccessReviews can ask for any account.
func TestServiceAccountsTakePartOfThePlaces(t *testing.T) {
	const most = 40
	for _, tc := range []struct {
		rule          string
		opts          freshness.Options
		account, node func(i int) string
		waits         int
		// another is how many of 40 requests of another account on the node may still wait, and own how
		// many of 40 requests of the node itself.
		another, own int
	}{
		{
			"one account on one node",
			freshness.Options{MaxPerNode: most},
			func(int) string { return "agent" }, func(int) string { return "worker" }, most / 4, most / 4, most / 2,
		},
		{
			"many accounts on one node",
			freshness.Options{MaxPerNode: most},
			func(i int) string { return fmt.Sprint("agent-", i) }, func(int) string { return "worker" }, most / 2, 0, most / 2,
		},
		{
			"one account on many nodes",
			freshness.Options{MaxTotal: most},
			func(int) string { return "agent" }, func(i int) string { return fmt.Sprint("node-", i) }, most / 4, most / 4, most / 2,
		},
		{
			"many accounts on many nodes",
			freshness.Options{MaxTotal: most},
			func(i int) string { return fmt.Sprint("agent-", i) }, func(i int) string { return fmt.Sprint("node-", i) },
			most / 2, 0, most / 2,
		},
		{
			"one account, with one place",
			freshness.Options{MaxPerNode: 1},
			func(int) string { return "agent" }, func(int) string { return "worker" }, 1, 0, 0,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, o := newCluster(), &outcomes{}
				tc.opts.Waited = o.waited
				w := freshness.New(c, tc.opts)
				defer w.Stop()
				evaluate := w.Authorize(limit, func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
					opinion, err := c.evaluate(ctx, req)
					if on := req.Extra[nodeidentity.ExtraNode]; len(on) == 1 {
						opinion.Node = on[0]
					}
					return opinion, err
				}, c.probe)
				const requests = 100
				of := func(account, node string, i int) *access.Request {
					r := get(node, fmt.Sprint("secret-", i))
					r.User = "system:serviceaccount:kube-system:" + account
					r.Extra = map[string][]string{nodeidentity.ExtraNode: {node}}
					return r
				}
				limited := 0
				var answered []func() int
				for _, batch := range []struct {
					requests []*access.Request
					waits    int
				}{
					{times(requests, func(i int) *access.Request { return of(tc.account(i), tc.node(i), i) }), tc.waits},
					{times(most, func(i int) *access.Request { return of("another", "worker", requests+i) }), tc.another},
					{times(most, func(i int) *access.Request { return get("worker", fmt.Sprint("own-", i)) }), tc.own},
				} {
					answered = append(answered, all(t, evaluate, batch.requests))
					limited += len(batch.requests) - batch.waits
					o.want(t, map[string]int{"authorize limited": limited})
				}
				for _, wait := range answered {
					wait()
				}
				waits := tc.waits + tc.another + tc.own
				o.want(t, map[string]int{"authorize expired": waits, "authorize limited": limited})
				// All places are free again.
				all(t, evaluate, []*access.Request{of("agent", "worker", 0)})()
				o.want(t, map[string]int{"authorize expired": waits + 1, "authorize limited": limited})
			})
		})
	}
}

// A caller may reuse the request as soon as it is answered, while identical requests
// still wait.
func TestRequestsAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := freshness.New(c, freshness.Options{})
		defer w.Stop()
		evaluate := w.Authorize(limit, c.evaluate, func(req *access.Request) bool {
			return req.Groups[0] == "system:nodes" && c.probe(req)
		})
		ctx, cancel := context.WithCancel(t.Context())
		first := get("worker", "db")
		first.Groups = []string{"system:nodes"}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := evaluate(ctx, first); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		answered := all(t, evaluate, []*access.Request{get("worker", "db")})
		cancel()
		<-done
		first.User, first.Name, first.Groups[0] = "reused", "other", "else"
		c.relate("worker", "db")
		if answered() != 1 {
			t.Error("the second request was not allowed")
		}
	})
}

// A request is allowed whenever its relation arrives in time, in any order of requests and
// changes.
func TestNoChangeIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, secrets = 20, 100
		c, o := newCluster(), &outcomes{}
		w := freshness.New(c, freshness.Options{Waited: o.waited})
		defer w.Stop()
		evaluate := w.Authorize(limit, c.evaluate, c.probe)
		var running sync.WaitGroup
		soon := func() { time.Sleep(rand.N(limit / 2)) }
		for n := range nodes {
			for s := range secrets {
				node, secret := fmt.Sprintf("node-%d", n), fmt.Sprintf("secret-%d", s)
				running.Go(func() { soon(); c.relate(node, secret) })
				running.Go(func() {
					soon()
					if opinion, err := evaluate(t.Context(), get(node, secret)); err != nil || opinion.Decision != verdict.Allow {
						t.Errorf("%s %s: %v, %v", node, secret, opinion.Decision, err)
					}
				})
			}
		}
		running.Wait()
		if o.count["authorize arrived"] == 0 || o.count["authorize expired"]+o.count["authorize limited"] > 0 {
			t.Errorf("waits ended as %v", o.count)
		}
	})
}
