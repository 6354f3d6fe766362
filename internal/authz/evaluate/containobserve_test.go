package evaluate_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
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
			got := c.Admit(t.Context(), write)
			if got.Decision != verdict.Allow || got.TooOld != nil || len(got.Unread) > 0 || got.Scope != nil {
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

// TestCreatesWithoutANameAreDecoded: an object of a kind that nothing reads is not decoded, because an error of
// the webhook would refuse the write, even in the mode Observe.
func TestCreatesWithoutANameAreDecoded(t *testing.T) {
	const document = `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "1", "operation": "CREATE",
		"kind": {"group": %[1]q, "version": "v1", "kind": %[2]q}, "resource": {"group": %[1]q, "version": "v1", "resource": %[3]q},
		"userInfo": {"username": "system:serviceaccount:kube-system:agent", "extra": {"authentication.kubernetes.io/node-name": ["a"]}},
		"object": {"kind": %[2]q, "metadata": {"generateName": "x-"}, "spec": {"user": "u"}}}}`
	for _, mode := range []v1alpha1.Mode{v1alpha1.Enforce, v1alpha1.Observe} {
		c := newContained(t, mode, "")
		for _, of := range [][3]string{
			{"authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"},
			{"authentication.k8s.io", "TokenReview", "tokenreviews"},
			{"", "Event", "events"},
			{"example.com", "Report", "reports"},
		} {
			asked, err := review.DecodeAdmission(fmt.Appendf(nil, document, of[0], of[1], of[2]), c.Reads)
			if err != nil {
				t.Errorf("%s, %s: %v", mode, of[2], err)
				continue
			}
			got := c.Admit(t.Context(), asked.Request())
			passes := mode == v1alpha1.Observe || of[0] != "example.com"
			if (got.Decision == verdict.Allow) != passes {
				t.Errorf("%s, %s: %+v", mode, of[2], got.Answer)
			}
		}
	}
}
