package evaluate_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// A request that passes only if kube-apiserver serves it is not decided as long as the server is unknown. A refusal
// is one whichever server that is.
func TestServersThatAreNotKnownFailClosed(t *testing.T) {
	const unread = `{"group": "apiregistration.k8s.io", "resource": "apiservices", "reason": "not allowed"}`
	endpoint := func(node, verb, name string) *access.Request {
		req := agentAsks(node, verb, "ciliumendpoints", name)
		req.Group, req.Version = "cilium.io", "v2"
		return req
	}
	refused := nodescope.ScopePodNotOnNode
	for _, tc := range []struct {
		rule                     string
		req                      *access.Request
		code                     verdict.Code // empty: passes
		knownUnread, knownTooOld bool
	}{
		{"a create, whose name only admission sees", endpoint("a", "create", ""), "", false, false},
		{"a list that selects the object by its name", endpoint("a", "list", "web"), "", false, false},
		{"a single object", endpoint("a", "patch", "web"), "", true, true},
		{"a single object of another node", endpoint("b", "patch", "web"), refused, true, true},
		{"a list of all", endpoint("a", "list", ""), refused, true, true},
		{"as the node, in a version of Kubernetes itself", agentAsks("a", "get", "secrets", "db"), "", true, false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			decide := func(c *contained, known bool) {
				t.Helper()
				for mode, authorize := range c.modes() {
					got, err := authorize(t.Context(), tc.req)
					switch {
					case !known && (err == nil || !got.FailClosed || got.Decision != verdict.NoOpinion):
						t.Errorf("%s: %+v %v, want an error", mode, got, err)
					case known && (err != nil || (got.Decision == verdict.Deny) != (tc.code != "") || tc.code != "" && got.Code != tc.code):
						t.Errorf("%s: %+v %v, want %q", mode, got, err, tc.code)
					}
				}
			}
			decide(newContained(t, v1alpha1.Enforce, ""), true)
			decide(newContained(t, v1alpha1.Enforce, unread), tc.knownUnread)
			old := newContained(t, v1alpha1.Enforce, "")
			old.tooOld = source.APIServices
			decide(old, tc.knownTooOld)
			if tc.code == "" {
				decide(newContained(t, v1alpha1.Observe, unread), true)
			}
		})
	}
}
