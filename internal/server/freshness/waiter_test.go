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
	"github.com/node-authorizer/node-authorizer/internal/server/freshness"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// limit is the time limit of waits, in synctest bubbles, where waiting takes no real time.
const limit = 250 * time.Millisecond

// cluster is a state in which nodes are related to secrets. It counts evaluations and
// probes.
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

func (c *cluster) KnowsNode(name string) bool { return name != "unknown" }

// relate adds a relation, as a watch would.
func (c *cluster) relate(node, secret string) {
	c.mu.Lock()
	c.related[[2]string{node, secret}] = true
	c.mu.Unlock()
	c.notify(node)
}

func (c *cluster) notify(node string) {
	for _, f := range c.listeners {
		f(node)
	}
}

func (c *cluster) has(node, secret string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.related[[2]string{node, secret}]
}

// evaluate allows access to related secrets.
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

// admit allows writes of related pods.
func (c *cluster) admit(_ context.Context, req *noderestriction.Request) noderestriction.Answer {
	c.asked.Add(1)
	if c.has(req.User, req.Name) {
		return noderestriction.Answer{Decision: verdict.Allow, Node: req.User, Status: 200}
	}
	return noderestriction.Answer{
		Decision: verdict.Deny, Code: noderestriction.PodNotFound, Node: req.User, Status: 404, Stale: true,
	}
}

func get(node, secret string) *access.Request {
	return &access.Request{User: node, Verb: "get", Resource: "secrets", Namespace: "shop", Name: secret, ResourceRequest: true}
}

// outcomes counts the outcomes of waits.
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
			rule: "a relation that arrives in time makes it an allow", node: "worker", limit: limit,
			meanwhile: func(c *cluster, _ func()) { time.Sleep(20 * time.Millisecond); c.relate("worker", "db") },
			want:      verdict.Allow, outcome: "authorize arrived", took: 20 * time.Millisecond,
		},
		{
			rule: "so does a change that could concern any node", node: "worker", limit: limit,
			meanwhile: func(c *cluster, _ func()) {
				time.Sleep(20 * time.Millisecond)
				c.mu.Lock()
				c.related[[2]string{"worker", "db"}] = true
				c.mu.Unlock()
				c.notify("")
			},
			want: verdict.Allow, outcome: "authorize arrived", took: 20 * time.Millisecond,
		},
		{
			rule: "without the relation it is a refusal after the time limit", node: "worker", limit: limit,
			meanwhile: func(*cluster, func()) {}, want: verdict.NoOpinion, outcome: "authorize expired", took: limit,
		},
		{
			rule: "a relation of another node or object does not count", node: "worker", limit: limit,
			meanwhile: func(c *cluster, _ func()) { c.relate("other", "db"); c.relate("worker", "else"); c.notify("") },
			want:      verdict.NoOpinion, outcome: "authorize expired", took: limit,
		},
		{
			rule: "a wait ends with the request's context", node: "worker", limit: limit,
			meanwhile: func(_ *cluster, cancel func()) { time.Sleep(30 * time.Millisecond); cancel() },
			want:      verdict.NoOpinion, outcome: "authorize canceled", took: 30 * time.Millisecond,
		},
		{
			rule: "a request of an unknown node does not wait", node: "unknown", limit: limit,
			meanwhile: func(*cluster, func()) {}, want: verdict.NoOpinion,
		},
		{
			rule: "with limit 0 no request waits", node: "worker", limit: 0,
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
					t.Errorf("took %v, reported %v, want %v", took, o.took, tc.took)
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
