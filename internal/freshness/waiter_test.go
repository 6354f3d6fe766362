package freshness_test

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/freshness"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// limit is how long refusals are held back, in bubbles where waiting takes no
// time.
const limit = 250 * time.Millisecond

// cluster is a state in which nodes are related to secrets. It counts what it
// is asked.
type cluster struct {
	mu        sync.Mutex
	related   map[[2]string]bool // node, secret
	listeners []func(string)
	asked     atomic.Int64 // whole evaluations
	probed    atomic.Int64
}

func newCluster() *cluster { return &cluster{related: map[[2]string]bool{}} }

func (c *cluster) OnChange(f func(string)) func() {
	c.listeners = append(c.listeners, f)
	return func() { c.listeners = nil }
}

func (c *cluster) KnowsNode(name string) bool { return name != "unheard-of" }

// relate lets the watch bring a relation.
func (c *cluster) relate(node, secret string) {
	c.mu.Lock()
	c.related[[2]string{node, secret}] = true
	c.mu.Unlock()
	c.tell(node)
}

func (c *cluster) tell(node string) {
	for _, f := range c.listeners {
		f(node)
	}
}

func (c *cluster) has(node, secret string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.related[[2]string{node, secret}]
}

// evaluate allows what the cluster relates at the time.
func (c *cluster) evaluate(_ context.Context, req *access.Request) (decision.Opinion, error) {
	c.asked.Add(1)
	if c.has(req.User, req.Name) {
		return decision.Opinion{Decision: verdict.Allow, Code: nodeauthz.PathToObject, Node: req.User}, nil
	}
	return decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NoPathToObject, Node: req.User, Stale: true}, nil
}

func (c *cluster) probe(req *access.Request) bool {
	c.probed.Add(1)
	return c.has(req.User, req.Name)
}

// admit allows writes for pods that the cluster relates at the time.
func (c *cluster) admit(_ context.Context, req *noderestriction.Request) noderestriction.Answer {
	c.asked.Add(1)
	if c.has(req.User, req.Name) {
		return noderestriction.Answer{Decision: verdict.Allow, Node: req.User, Status: 200}
	}
	return noderestriction.Answer{Decision: verdict.Deny, Code: noderestriction.PodNotFound, Node: req.User, Status: 404, Stale: true}
}

func get(node, secret string) *access.Request {
	return &access.Request{User: node, Verb: "get", Resource: "secrets", Namespace: "shop", Name: secret, ResourceRequest: true}
}

// outcomes counts how waits end.
type outcomes struct {
	mu    sync.Mutex
	count map[string]int
	took  time.Duration // of the last wait
}

func (o *outcomes) waited(kind, outcome string, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == nil {
		o.count = map[string]int{}
	}
	o.count[kind+" "+outcome]++
	o.took = took
}

func (o *outcomes) want(t *testing.T, want map[string]int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !maps.Equal(o.count, want) {
		t.Errorf("waits ended as %v, want %v", o.count, want)
	}
}

func TestRequestWaitsForTheWatch(t *testing.T) {
	for _, tc := range []struct {
		rule      string
		node      string
		limit     time.Duration
		meanwhile func(c *cluster, cancel func()) // happens while the request waits
		want      verdict.Decision
		outcome   string
		took      time.Duration
	}{
		{
			rule: "a relation that comes in time makes it an allow", node: "worker", limit: limit,
			meanwhile: func(c *cluster, _ func()) { time.Sleep(20 * time.Millisecond); c.relate("worker", "db") },
			want:      verdict.Allow, outcome: "authorize arrived", took: 20 * time.Millisecond,
		},
		{
			rule: "a relation that comes through a change that could concern any node does, too", node: "worker", limit: limit,
			meanwhile: func(c *cluster, _ func()) {
				time.Sleep(20 * time.Millisecond)
				c.mu.Lock()
				c.related[[2]string{"worker", "db"}] = true
				c.mu.Unlock()
				c.tell("")
			},
			want: verdict.Allow, outcome: "authorize arrived", took: 20 * time.Millisecond,
		},
		{
			rule: "without one it stays a refusal when the time is up", node: "worker", limit: limit,
			meanwhile: func(*cluster, func()) {}, want: verdict.NoOpinion, outcome: "authorize expired", took: limit,
		},
		{
			rule: "what is related to others does not count", node: "worker", limit: limit,
			meanwhile: func(c *cluster, _ func()) { c.relate("other", "db"); c.relate("worker", "else"); c.tell("") },
			want:      verdict.NoOpinion, outcome: "authorize expired", took: limit,
		},
		{
			rule: "a caller that goes away ends the wait", node: "worker", limit: limit,
			meanwhile: func(_ *cluster, cancel func()) { time.Sleep(30 * time.Millisecond); cancel() },
			want:      verdict.NoOpinion, outcome: "authorize canceled", took: 30 * time.Millisecond,
		},
		{
			rule: "a node that the cluster does not know does not wait", node: "unheard-of", limit: limit,
			meanwhile: func(*cluster, func()) {}, want: verdict.NoOpinion,
		},
		{
			rule: "nothing waits when it is off", node: "worker", limit: 0,
			meanwhile: func(*cluster, func()) {}, want: verdict.NoOpinion,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, o := newCluster(), &outcomes{}
				w := freshness.New(c, freshness.Options{Waited: o.waited})
				defer w.Stop()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begin := time.Now()
				var other sync.WaitGroup
				other.Go(func() { synctest.Wait(); tc.meanwhile(c, cancel) })
				opinion, err := w.Authorize(tc.limit, c.evaluate, c.probe)(ctx, get(tc.node, "db"))
				if err != nil || opinion.Decision != tc.want {
					t.Errorf("decision %v, error %v, want %v", opinion.Decision, err, tc.want)
				}
				if took := time.Since(begin); took != tc.took || o.took != tc.took {
					t.Errorf("took %v, told %v, want %v", took, o.took, tc.took)
				}
				if tc.outcome == "" {
					o.want(t, nil)
				} else {
					o.want(t, map[string]int{tc.outcome: 1})
				}
				other.Wait()
			})
		})
	}
}
