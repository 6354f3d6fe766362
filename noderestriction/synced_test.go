package noderestriction_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// filling is a State whose objects are still being read.
type filling struct {
	*cluster
	synced bool
}

func (f *filling) HasSynced() bool { return f.synced }

// TestWhatIsNotReadYetIsAnError asks about objects that are not in the state.
func TestWhatIsNotReadYetIsAnError(t *testing.T) {
	empty := &cluster{}
	claims := &cluster{pods: map[string]*corev1.Pod{"shop/stuck": pod("shop", "stuck", "worker-1", claimVolume("gone"))}}
	for _, tc := range []struct {
		rule  string
		state *cluster
		req   *noderestriction.Request
		kind  string
		code  verdict.Code // of the refusal once the state has synced
	}{
		{"the pod of a delete", empty, podOperation(noderestriction.Delete, "", "web"), "Pod", noderestriction.PodNotFound},
		{"the pod of a token", empty, requestToken("web", "a"), "TokenRequest", noderestriction.PodNotFound},
		{"the node of a mirror pod", empty, createPod(func(*corev1.Pod) {}), "Pod", noderestriction.NodeNotFound},
		{"the claim of a pod's volume", claims, requestToken("stuck", "a"), "TokenRequest", noderestriction.AudienceLookupFailed},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			state := &filling{cluster: tc.state}
			r := noderestriction.New(state, nil, latest(t, ""))
			considered, _ := r.Consider(t.Context(), tc.req, noderestriction.Open{})
			for _, got := range []noderestriction.Answer{r.Decide(t.Context(), tc.req), considered} {
				if got.Decision != verdict.Deny || !errors.Is(got.Err, noderestriction.ErrNotSynced) || got.Status != 500 ||
					got.StatusReason != metav1.StatusReasonUnknown || got.Reason.Message != noderestriction.ErrNotSynced.Error() {
					t.Errorf("before: %+v", got)
				}
			}
			if err := r.Validate(t.Context(), attributesOf(tc.req, tc.kind), nil); !errors.Is(err, noderestriction.ErrNotSynced) {
				t.Errorf("as a plugin: %v", err)
			}
			state.synced = true
			got := r.Decide(t.Context(), tc.req)
			if got.Code != tc.code || errors.Is(got.Err, noderestriction.ErrNotSynced) || got.Status == 500 {
				t.Errorf("after: %+v", got)
			}
		})
	}
}

// TestWhatNeedsNoStateIsDecidedAtOnce: no object that is still missing changes these answers.
func TestWhatNeedsNoStateIsDecidedAtOnce(t *testing.T) {
	r := noderestriction.New(&filling{cluster: shop()}, nil, latest(t, ""))
	for _, req := range []*noderestriction.Request{
		podOperation(noderestriction.Delete, "", "web"), updateNode("", func(*corev1.Node) {}), requestBoundToken(nil),
		updateNode("", func(n *corev1.Node) { n.Spec.Taints = nil }),
	} {
		if got := r.Decide(t.Context(), req); got.Err != nil || got.Status == 500 {
			t.Errorf("%s %s: %+v", req.Operation, req.Resource, got)
		}
	}
}
