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
	"github.com/node-authorizer/node-authorizer/internal/freshness"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// all puts requests to an evaluator at once and returns how many it allowed,
// when all are answered.
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

// Thousands of requests that ask the same are looked at once for each change.
func TestOneLookForAllThatAskTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, changes = 5000, 10
		c, o := newCluster(), &outcomes{}
		w := freshness.New(c, freshness.Options{Waited: o.waited, MaxPerNode: requests, MaxTotal: requests})
		defer w.Stop()
		answered := all(t, w.Authorize(limit, c.evaluate, c.probe), times(requests, func(int) *access.Request { return get("worker", "db") }))
		for range changes {
			c.relate("worker", "else")
			synctest.Wait()
		}
		if n := c.probed.Load(); n != changes {
			t.Errorf("%d changes made for %d looks", changes, n)
		}
		if n := c.asked.Load(); n != requests {
			t.Errorf("the evaluator was asked %d times before the relation came, want once for each of %d", n, requests)
		}
		c.relate("worker", "db")
		if n := answered(); n != requests {
			t.Errorf("%d of %d allowed", n, requests)
		}
		o.want(t, map[string]int{"authorize arrived": requests})
	})
}

// A change makes for looks at the questions of the node that it concerns alone.
func TestChangesOfOtherNodesCostNothing(t *testing.T) {
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
			t.Errorf("looked %d times", n)
		}
		answered()
	})
}

// Changes that come while questions are looked at are dealt with together.
func TestChangesInTheMeantimeAreOneBatch(t *testing.T) {
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
		c.tell("worker")
		synctest.Wait()
		for range 1000 {
			c.tell("worker")
		}
		close(hold)
		synctest.Wait()
		if n := c.probed.Load(); n != 2 { // the look under way, and one for all that came meanwhile
			t.Errorf("looked %d times", n)
		}
		answered()
	})
}

func TestTooManyAreAnsweredAtOnce(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		opts   freshness.Options
		node   func(i int) string
		waits  int
		others int // requests of another node that wait nevertheless
	}{
		{"of one node", freshness.Options{MaxPerNode: 10}, func(int) string { return "worker" }, 10, 1},
		{"of all nodes", freshness.Options{MaxTotal: 10}, func(i int) string { return fmt.Sprintf("node-%d", i) }, 10, 0},
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
				answered := all(t, evaluate, times(requests, func(i int) *access.Request { return get(tc.node(i), fmt.Sprintf("secret-%d", i)) }))
				o.want(t, map[string]int{"authorize limited": requests - tc.waits})
				other := all(t, evaluate, []*access.Request{get("other", "db")})
				answered()
				other()
				o.want(t, map[string]int{
					"authorize limited": requests - tc.waits + 1 - tc.others,
					"authorize expired": tc.waits + tc.others,
				})
				// Whoever comes after them waits again.
				all(t, evaluate, []*access.Request{get("worker", "db")})()
				o.want(t, map[string]int{
					"authorize limited": requests - tc.waits + 1 - tc.others,
					"authorize expired": tc.waits + tc.others + 1,
				})
			})
		})
	}
}

// A caller may use the request for something else as soon as it is answered,
// while others that ask the same still wait.
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
		first.User, first.Name, first.Groups[0] = "used", "for something else", "now"
		c.relate("worker", "db")
		if answered() != 1 {
			t.Error("the second request was not allowed")
		}
	})
}

// Whenever a relation comes within the time, the request is allowed: no news is
// lost, however requests and changes meet.
func TestNoNewsIsLost(t *testing.T) {
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
