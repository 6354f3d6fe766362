package freshness

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// unchanging is a cluster that knows every node and never changes.
type unchanging struct{}

func (unchanging) OnChange(func(string)) func() { return func() {} }
func (unchanging) KnowsNode(string) bool        { return true }

// BenchmarkUnderAttack measures the cost of a node that asks for objects that it may not
// read, while its maximum number of requests waits. It measures its next request, to which the
// oldest gives way, a change that concerns another node, and a change that concerns this
// node, up to the last probe of its questions.
func BenchmarkUnderAttack(b *testing.B) {
	node := nodeauthz.New(graph.New(), kubeversion.For(kubeversion.Latest))
	probes := make(chan struct{}, DefaultMaxPerNode)
	w := New(unchanging{}, Options{})
	defer w.Stop()
	authorize := w.Authorize(time.Hour, func(_ context.Context, req *access.Request) (decision.Opinion, error) {
		answer := node.Decide(req)
		return decision.Opinion{Decision: answer.Decision, Code: answer.Code, Node: answer.Node, Stale: true}, nil
	}, func(req *access.Request) bool {
		allowed := node.Decide(req).Decision == verdict.Allow
		probes <- struct{}{}
		return allowed
	})
	request := func(i int) *access.Request {
		return &access.Request{
			User: "system:node:worker", Groups: []string{"system:nodes"}, Verb: "get", Resource: "secrets",
			Namespace: "shop", Name: fmt.Sprintf("secret-%d", i), ResourceRequest: true,
		}
	}

	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	for i := range DefaultMaxPerNode {
		waiting.Go(func() { _, _ = authorize(ctx, request(i)) })
	}
	for w.authorize.waiting.Load() < DefaultMaxPerNode {
		runtime.Gosched()
	}
	b.Run("request", func(b *testing.B) {
		related := func(*access.Request) bool { probes <- struct{}{}; return false }
		for i := 0; b.Loop(); i++ {
			req := request(-1 - i)
			node.Decide(req)
			w.authorize.enter("worker", "", accessQuestion(req, related, w.authorize.changes.Load()))
		}
	})
	b.Run("change-of-another-node", func(b *testing.B) {
		for b.Loop() {
			w.authorize.changed("other")
		}
	})
	b.Run("change-of-the-node", func(b *testing.B) {
		for b.Loop() {
			w.authorize.changed("worker")
			for range DefaultMaxPerNode {
				<-probes
			}
		}
	})
	cancel()
	waiting.Wait()
}
