package source

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/freshness"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Nodes whose requests wait for a watch event are allowed when it arrives: to read
// the secret of a new pod, and then, immediately, to delete the pod.
func TestChangesReachWaitingRequests(t *testing.T) {
	const nodes, pods = 5, 40
	name := func(kind string, i int) string { return fmt.Sprintf("%s-%d", kind, i) }
	s := newStub(t)
	for i := range nodes {
		s.set("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name("worker", i)}})
	}
	live := startWatch(t, s, LiveOptions{WithoutRBAC: true})
	waitSynced(t, live)

	features := kubeversion.For(kubeversion.Latest)
	node := nodeauthz.New(live.State().Graph, features)
	restriction := noderestriction.New(live.State(), nil, features)
	var expired, waiting atomic.Int64
	waiter := freshness.New(live.State(), freshness.Options{Synced: live.Synced, Waited: func(_, outcome string, _ time.Duration) {
		if outcome != freshness.Arrived {
			expired.Add(1)
		}
	}})
	defer waiter.Stop()
	authorize := waiter.Authorize(time.Minute, func(_ context.Context, req *access.Request) (decision.Opinion, error) {
		answer := node.Decide(req)
		if answer.Code == nodeauthz.NoPathToObject {
			waiting.Add(1)
		}
		return decision.Opinion{
			Decision: answer.Decision, Code: answer.Code, Node: answer.Node, Stale: answer.Code == nodeauthz.NoPathToObject,
		}, nil
	}, func(req *access.Request) bool { return node.Decide(req).Decision == verdict.Allow })

	var running sync.WaitGroup
	for i := range pods {
		user, groups := "system:node:"+name("worker", i%nodes), []string{"system:nodes"}
		running.Go(func() {
			opinion, err := authorize(t.Context(), &access.Request{
				User: user, Groups: groups, Verb: "get", Resource: "secrets", Namespace: "shop", Name: name("secret",
					i), ResourceRequest: true,
			})
			if err != nil || opinion.Decision != verdict.Allow {
				t.Errorf("%s: %v, %v", name("secret", i), opinion.Decision, err)
			}
			answer := restriction.Decide(t.Context(), &noderestriction.Request{
				User: user, Groups: groups, Operation: noderestriction.Delete, Resource: "pods", Namespace: "shop", Name: name("pod", i),
			})
			if answer.Decision != verdict.Allow {
				t.Errorf("%s: %+v", name("pod", i), answer)
			}
		})
	}
	eventually(t, "all requests wait", func() bool { return waiting.Load() == pods })
	for i := range pods {
		s.set("pods", boundPod("shop", name("pod", i), name("worker", i%nodes), name("secret", i)))
	}
	running.Wait()
	if n := expired.Load(); n > 0 {
		t.Errorf("%d waits timed out", n)
	}
}
