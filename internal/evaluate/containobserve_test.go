package evaluate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestObservingChangesNoAnswerOfAnotherScope: a scope that enforces lets the request pass without any state, and
// one that observes would need state that is too old or was never read.
func TestObservingChangesNoAnswerOfAnotherScope(t *testing.T) {
	both := func(t *testing.T, missing string, mode v1alpha1.Mode) *contained {
		t.Helper()
		c := newContained(t, mode, missing)
		enforces, errs := nodescope.Compile(&v1alpha1.NodeScope{
			ObjectMeta: metav1.ObjectMeta{Name: "all-pods"}, Spec: v1alpha1.NodeScopeSpec{
				Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: "agent"}}, Mode: v1alpha1.Enforce,
				Anywhere: []v1alpha1.AnywhereRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}}},
			},
		})
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		policy, _ := nodescope.NewPolicy(append(c.Scopes.Policy().Scopes(), enforces))
		c.policy.Store(policy)
		return c
	}
	req := agentAsks("b", "delete", "pods", "web")
	write := &noderestriction.Request{
		User: req.User, Extra: req.Extra, Operation: noderestriction.Delete, Resource: "pods", Namespace: "shop", Name: "web",
	}
	for _, tc := range []struct {
		rule, missing string
		tooOld        source.Kinds
	}{
		{"too old", "", source.Pods | source.Nodes},
		{"not read", `{"group": "", "resource": "pods", "reason": "not allowed"}`, 0},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			c := both(t, tc.missing, v1alpha1.Observe)
			c.tooOld = tc.tooOld
			for mode, authorize := range c.modes() {
				if got, err := authorize(t.Context(), req); err != nil || got.FailClosed || got.Scope != nil {
					t.Errorf("%s: %+v, %v", mode, got, err)
				}
			}
			if got := c.Admit(t.Context(), write); got.Decision != verdict.Allow || got.TooOld != nil || len(got.Unread) > 0 || got.Scope != nil {
				t.Errorf("the write: %+v", got)
			}
			if tc.tooOld == 0 {
				return
			}
			c = both(t, tc.missing, v1alpha1.Enforce)
			c.tooOld = tc.tooOld
			for mode, authorize := range c.modes() {
				if got, err := authorize(t.Context(), req); err == nil || !got.FailClosed {
					t.Errorf("%s, if both enforce: %+v, %v", mode, got, err)
				}
			}
			if got := c.Admit(t.Context(), write); got.TooOld == nil {
				t.Errorf("the write, if both enforce: %+v", got)
			}
		})
	}
}
