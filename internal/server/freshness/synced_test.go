package freshness_test

import (
	"context"
	"errors"
	"sync"
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

// Until the state has been read, a refusal that a lag could explain is an error, and only
// what the state shows is allowed.
func TestRefusalsBeforeTheSyncAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		synced := false
		w := freshness.New(c, freshness.Options{Synced: func() bool { return synced }})
		defer w.Stop()
		authorize, admit := w.Authorize(limit, c.evaluate, c.probe), w.Admit(limit, c.admit)
		begin := time.Now()
		for _, node := range []string{"worker", "unknown"} {
			opinion, err := authorize(t.Context(), get(node, "db"))
			if !errors.Is(err, nodeauthz.ErrNotSynced) || opinion.Decision != verdict.NoOpinion ||
				opinion.Code != decision.NotSynced || opinion.Node != node {
				t.Errorf("%s: opinion %+v, error %v", node, opinion, err)
			}
			answer := admit(t.Context(), &noderestriction.Request{User: node, Name: "api"})
			if answer.Decision != verdict.Deny || answer.Status != 500 || answer.StatusReason != "" || answer.Code != decision.NotSynced ||
				answer.Reason.Code != decision.NotSynced || answer.Node != node {
				t.Errorf("%s: answer %+v", node, answer)
			}
		}
		if time.Since(begin) != 0 {
			t.Error("a request waited before the sync")
		}
		c.relate("worker", "shown")
		if opinion, err := authorize(t.Context(), get("worker", "shown")); err != nil || opinion.Decision != verdict.Allow {
			t.Errorf("a relation that the state shows is not allowed: %+v, %v", opinion, err)
		}

		synced = true
		opinion, err := authorize(t.Context(), get("worker", "db"))
		if err != nil || opinion.Decision != verdict.NoOpinion || opinion.Code != nodeauthz.NoPathToObject {
			t.Errorf("after the sync: opinion %+v, error %v", opinion, err)
		}
		synced = false // Synced is not called again
		if answer := admit(t.Context(), &noderestriction.Request{User: "worker", Name: "api"}); answer.Status != 404 {
			t.Errorf("after the sync: answer %+v", answer)
		}
	})
}

// If the state syncs during an evaluation, the evaluator may have seen an incomplete state.
func TestSyncDuringAnEvaluationIsTooLate(t *testing.T) {
	c := newCluster()
	synced := false
	w := freshness.New(c, freshness.Options{Synced: func() bool { return synced }})
	defer w.Stop()
	evaluate := w.Authorize(limit, func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		opinion, err := c.evaluate(ctx, req)
		synced = true
		return opinion, err
	}, c.probe)
	if _, err := evaluate(t.Context(), get("worker", "db")); !errors.Is(err, nodeauthz.ErrNotSynced) {
		t.Errorf("error is %v", err)
	}
}

func TestOtherAnswersDoNotWait(t *testing.T) {
	broken := errors.New("webhook audit: connection refused")
	for rule, given := range map[string]struct {
		opinion decision.Opinion
		err     error
	}{
		"an allow": {decision.Opinion{Decision: verdict.Allow, Node: "worker"}, nil},
		"a refusal that no change can turn": {
			decision.Opinion{Decision: verdict.NoOpinion, Node: "worker", Code: nodeauthz.VerbNotAllowed}, nil,
		},
		"an error": {decision.Opinion{Node: "worker", Stale: true}, broken},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, o := newCluster(), &outcomes{}
				w := freshness.New(c, freshness.Options{Waited: o.waited})
				defer w.Stop()
				opinion, err := w.Authorize(limit, func(context.Context, *access.Request) (decision.Opinion, error) {
					return given.opinion, given.err
				}, c.probe)(t.Context(), get("worker", "db"))
				if opinion.Decision != given.opinion.Decision || !errors.Is(err, given.err) {
					t.Errorf("got %+v, %v", opinion, err)
				}
				o.want(t, nil)
			})
		})
	}
}

func TestWritesWaitForTheWatch(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		change  func(c *cluster)
		want    int
		outcome string
		asked   int64
	}{
		{
			"the pod arrives in time",
			func(c *cluster) { c.notify("worker"); synctest.Wait(); c.relate("worker", "api") },
			200, "admit arrived", 3,
		},
		{"the pod does not arrive", func(*cluster) {}, 404, "admit expired", 1},
		{"the pod arrives on another node", func(c *cluster) { c.relate("other", "api") }, 404, "admit expired", 1},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, o := newCluster(), &outcomes{}
				w := freshness.New(c, freshness.Options{Waited: o.waited})
				defer w.Stop()
				var other sync.WaitGroup
				other.Go(func() { synctest.Wait(); tc.change(c) })
				answer := w.Admit(limit, c.admit)(t.Context(), &noderestriction.Request{User: "worker", Name: "api"})
				if answer.Status != tc.want {
					t.Errorf("answer %+v, want status %d", answer, tc.want)
				}
				o.want(t, map[string]int{tc.outcome: 1})
				other.Wait()
				// Once at first, and once for each change that concerns the node.
				if n := c.asked.Load(); n != tc.asked {
					t.Errorf("asked %d times, want %d", n, tc.asked)
				}
			})
		})
	}
}

// A change between the evaluation and the wait is not missed.
func TestChangeBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newCluster(), &outcomes{}
		w := freshness.New(c, freshness.Options{Waited: o.waited})
		defer w.Stop()
		changed := false
		evaluate := w.Authorize(limit, func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
			opinion, err := c.evaluate(ctx, req)
			if !changed {
				changed = true
				c.relate("worker", "db")
			}
			return opinion, err
		}, c.probe)
		begin := time.Now()
		opinion, err := evaluate(t.Context(), get("worker", "db"))
		if err != nil || opinion.Decision != verdict.Allow || time.Since(begin) != 0 {
			t.Errorf("%v, %v after %v", opinion.Decision, err, time.Since(begin))
		}
		o.want(t, map[string]int{"authorize arrived": 1})
	})
}
