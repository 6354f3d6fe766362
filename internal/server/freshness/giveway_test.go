package freshness_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/freshness"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// accountOn is a request of a service account whose token is bound to the node.
func accountOn(node, account, secret string) *access.Request {
	r := get(node, secret)
	r.User, r.Extra = "system:serviceaccount:kube-system:"+account, map[string][]string{nodeidentity.ExtraNode: {node}}
	return r
}

// evaluateOf allows access to secrets that are related to the node of the user or of its token.
func (c *cluster) evaluateOf(ctx context.Context, req *access.Request) (decision.Opinion, error) {
	of := *req
	if on := req.Extra[nodeidentity.ExtraNode]; len(on) == 1 {
		of.User = on[0]
	}
	return c.evaluate(ctx, &of)
}

func (c *cluster) probeOf(req *access.Request) bool {
	opinion, err := c.evaluateOf(context.Background(), req)
	return err == nil && !opinion.Stale
}

// last is how long the last wait took.
func (o *outcomes) last() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.took
}

// TestTheOldestRequestGivesWay: whoever may create SubjectAccessReviews can take all places of a node. A request
// that comes then, and whose relation arrives soon, is allowed nevertheless.
func TestTheOldestRequestGivesWay(t *testing.T) {
	const most, flood = 8, 100
	for _, tc := range []struct {
		rule string
		opts freshness.Options
		req  *access.Request
		// before and after are requests that come before and after it.
		before, after func(i int) *access.Request
		later         int
		want          verdict.Decision
	}{
		{
			rule: "to a request of the same node", opts: freshness.Options{MaxPerNode: most}, req: get("worker", "db"),
			before: func(i int) *access.Request { return get("worker", fmt.Sprint("none-", i)) }, want: verdict.Allow,
		},
		{
			rule: "to a request of any node, if all places are taken",
			opts: freshness.Options{MaxTotal: most}, req: get("worker", "db"),
			before: func(i int) *access.Request { return get(fmt.Sprint("node-", i), "none") }, want: verdict.Allow,
		},
		{
			rule: "to a request of the same account",
			opts: freshness.Options{MaxPerNode: most}, req: accountOn("worker", "agent", "db"),
			before: func(i int) *access.Request { return accountOn("worker", "agent", fmt.Sprint("none-", i)) }, want: verdict.Allow,
		},
		{
			rule: "to a request of another account",
			opts: freshness.Options{MaxPerNode: most}, req: accountOn("worker", "agent", "db"),
			before: func(i int) *access.Request { return accountOn("worker", fmt.Sprint("some-", i), "none") }, want: verdict.Allow,
		},
		{
			rule: "to a request of any account on any node",
			opts: freshness.Options{MaxTotal: most}, req: accountOn("worker", "agent", "db"),
			before: func(i int) *access.Request { return accountOn(fmt.Sprint("node-", i), fmt.Sprint("some-", i), "none") },
			want:   verdict.Allow,
		},
		{
			rule: "so a request waits until as many came after it as there are places", opts: freshness.Options{MaxPerNode: most},
			req: get("worker", "db"), later: most - 1, want: verdict.Allow,
			after: func(i int) *access.Request { return get("worker", fmt.Sprint("none-", i)) },
		},
		{
			rule: "and no longer",
			opts: freshness.Options{MaxPerNode: most}, req: get("worker", "db"), later: most, want: verdict.NoOpinion,
			after: func(i int) *access.Request { return get("worker", fmt.Sprint("none-", i)) },
		},
		{
			rule: "no node to accounts",
			opts: freshness.Options{MaxPerNode: most}, req: get("worker", "db"), later: flood, want: verdict.Allow,
			after: func(i int) *access.Request { return accountOn("worker", fmt.Sprint("some-", i), "none") },
		},
		{
			rule: "no account to another one that has its share", opts: freshness.Options{MaxPerNode: most},
			req: accountOn("worker", "agent", "db"), later: flood, want: verdict.Allow,
			after: func(i int) *access.Request { return accountOn("worker", "thief", fmt.Sprint("none-", i)) },
		},
		{
			rule: "no request of a node to another node, while there are places", opts: freshness.Options{MaxPerNode: most},
			req: get("worker", "db"), later: flood, want: verdict.Allow,
			after: func(i int) *access.Request { return get("other", fmt.Sprint("none-", i)) },
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				w := freshness.New(c, tc.opts)
				defer w.Stop()
				evaluate := w.Authorize(limit, c.evaluateOf, c.probeOf)
				var flooded []func() int
				if tc.before != nil {
					flooded = append(flooded, all(t, evaluate, times(flood, tc.before)))
				}
				var opinion decision.Opinion
				var running sync.WaitGroup
				running.Go(func() { opinion, _ = evaluate(t.Context(), tc.req) })
				synctest.Wait()
				if tc.after != nil {
					flooded = append(flooded, all(t, evaluate, times(tc.later, tc.after)))
				}
				c.relate("worker", "db")
				running.Wait()
				if opinion.Decision != tc.want {
					t.Errorf("the request is answered with %v, want %v", opinion.Decision, tc.want)
				}
				for _, answered := range flooded {
					answered()
				}
			})
		})
	}
}

// TestAdmissionHasPlacesOfItsOwn: nobody can make an API server ask about a write that is not its own.
func TestAdmissionHasPlacesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, flood = 8, 100
		c := newCluster()
		w := freshness.New(c, freshness.Options{MaxPerNode: most, MaxTotal: most})
		defer w.Stop()
		var answer noderestriction.Answer
		var running sync.WaitGroup
		running.Go(func() {
			answer = w.Admit(limit, c.admit)(t.Context(), &noderestriction.Request{User: "worker", Name: "api"})
		})
		synctest.Wait()
		ask := times(flood, func(i int) *access.Request { return get("worker", fmt.Sprint("none-", i)) })
		answered := all(t, w.Authorize(limit, c.evaluate, c.probe), ask)
		c.relate("worker", "api")
		running.Wait()
		if answer.Decision != verdict.Allow {
			t.Errorf("the write is answered with %v", answer.Decision)
		}
		answered()
	})
}

// A request that gives way says so, and how long it waited. The others continue to wait.
func TestGivingWayIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newCluster(), &outcomes{}
		w := freshness.New(c, freshness.Options{MaxPerNode: 1, Waited: o.waited})
		defer w.Stop()
		evaluate := w.Authorize(limit, c.evaluate, c.probe)
		first := all(t, evaluate, []*access.Request{get("worker", "one")})
		time.Sleep(limit / 5)
		second := all(t, evaluate, []*access.Request{get("worker", "two")})
		first()
		o.want(t, map[string]int{"authorize limited": 1})
		if took := o.last(); took != limit/5 {
			t.Errorf("it waited for %v", took)
		}
		second()
		o.want(t, map[string]int{"authorize limited": 1, "authorize expired": 1})
		if took := o.last(); took != limit {
			t.Errorf("the second waited for %v", took)
		}
	})
}
