package noderestriction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// frequent are the writes that kubelets send most.
func frequent() map[string]*noderestriction.Request {
	return map[string]*noderestriction.Request{
		"lease-renewal": lease(noderestriction.Update, "kube-node-lease", "worker-1", nil),
		"node-status": updateNode("status", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
		}),
		"pod-status": updateStatus(pod("shop", "web", "worker-1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
		"token":      requestToken("web", "vault"),
	}
}

func BenchmarkDecide(b *testing.B) {
	r := noderestriction.New(shop().withVolumes(tokenVolume("vault")), nil, kubeversion.For(kubeversion.Latest))
	for name, req := range frequent() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r.Decide(b.Context(), req).Decision != verdict.Allow {
					b.Fatal("not allowed")
				}
			}
		})
	}
}

// TestFrequentWritesAllocateLittle bounds the allocations of heartbeats, which
// thousands of nodes send.
func TestFrequentWritesAllocateLittle(t *testing.T) {
	requests := frequent()
	r := noderestriction.New(shop().withVolumes(tokenVolume("vault")), nil, kubeversion.For(kubeversion.Latest))
	for name, limit := range map[string]float64{"lease-renewal": 1, "node-status": 1, "pod-status": 1, "token": 1} {
		allocations := testing.AllocsPerRun(100, func() { r.Decide(t.Context(), requests[name]) })
		if allocations > limit {
			t.Errorf("%s: %v allocations, want at most %v", name, allocations, limit)
		}
	}
}
