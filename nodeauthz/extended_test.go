package nodeauthz_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

// addExtended adds pods with claims for extended resources to worker-1 and, for
// shop/api-both only, to worker-2; a pod of worker-1 names that one in its spec too.
func addExtended(g *graph.Graph) {
	for _, p := range []struct{ name, node, extended, named string }{
		{"train-1", "worker-1", "api-extended", ""},
		{"train-2", "worker-1", "api-both", "api-both"},
		{"train-3", "worker-2", "api-both", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: p.name}, Spec: corev1.PodSpec{NodeName: p.node}}
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: p.extended}
		if p.named != "" {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &p.named}}
		}
		g.SetPod(pod)
	}
}

// Pods have claims for extended resources since 1.34. In a cluster before that nothing
// rests on them: neither an answer, nor an explanation, nor the objects that a node can reach.
func TestClaimsOfExtendedResourcesCountSince134(t *testing.T) {
	for _, minor := range kubeversion.Minors() {
		t.Run(minor.String(), func(t *testing.T) {
			g := newCluster()
			addExtended(g)
			a := nodeauthz.New(g, kubeversion.For(minor))
			for _, tc := range []struct {
				node, claim    string
				before, since  bool
				nearest, nodes int // before
			}{
				{"worker-1", "api-extended", false, true, 0, 0},
				{"worker-1", "api-both", true, true, 1, 1},
				{"worker-2", "api-both", false, true, 1, 1},
				{"worker-2", "api-extended", false, false, 0, 0},
				{"worker-1", "a100", true, true, 1, 1},
			} {
				want := tc.since
				if minor < 34 {
					want = tc.before
				}
				said := a.Explain(from(tc.node, "get", "resourceclaims.resource.k8s.io", "shop/"+tc.claim))
				if got := said.Code == nodeauthz.PathToObject; got != want {
					t.Errorf("%s gets %s: %t, want %t: %s", tc.node, tc.claim, got, want, said.Reason.Message)
				}
				if minor < 34 && strings.Contains(said.Reason.Message+said.Reason.Path.String(), graph.ExtendedResourceClaimField) {
					t.Errorf("the reason uses a field that pods do not have: %+v", said.Reason)
				}
				if minor < 34 && said.Nearest != nil && (len(said.Nearest.Paths) != tc.nearest || said.Nearest.TotalNodes != tc.nodes) {
					t.Errorf("%s gets %s: nearest are %+v", tc.node, tc.claim, said.Nearest)
				}
				reached := slices.ContainsFunc(a.Reach(tc.node).Related, func(g nodeauthz.Grant) bool {
					return g.Resource == "resourceclaims" && g.Name == tc.claim
				})
				if _, can := a.PathsByNode(graph.ResourceClaim, "shop", tc.claim)[tc.node]; reached != want || can != want {
					t.Errorf("%s reaches %s: %t, among those that can: %t; want %t", tc.node, tc.claim, reached, can, want)
				}
			}
		})
	}
}

// A relation through the field alone never counts, after any change.
func TestClaimsOfExtendedResourcesDoNotShowBefore134(t *testing.T) {
	g := graph.New()
	a := nodeauthz.New(g, kubeversion.For(33))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			addExtended(g)
			for _, name := range []string{"train-1", "train-2", "train-3"} {
				g.DeletePod("shop", name)
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		if a.Decide(from("worker-1", "get", "resourceclaims.resource.k8s.io", "shop/api-extended")).Code != nodeauthz.NoPathToObject {
			t.Fatal("a claim of 1.34 is allowed in 1.33")
		}
	}
}
