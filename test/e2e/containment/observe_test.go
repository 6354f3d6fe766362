package containment

import (
	"strconv"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// With scopes in the mode Observe, API servers give the same answers as without scopes, also to requests that the
// scopes would refuse. TestMatrix shows it for the scopes of agents.
func TestObserveChangesNothing(t *testing.T) {
	observed := agentOf(t, bypassNamespace, "observed", nodeA)
	unbound, err := plane.requestToken(t.Context(), bypassNamespace, "observed", nil)
	must(t, err)
	withoutNode, err := plane.token(unbound)
	must(t, err)
	must(t, plane.grant(t.Context(), bypassNamespace, "observed", rule("*", "*", "*")))
	must(t, until(t.Context(), observed, get("/api/v1/nodes/"+nodeB), false))
	sent := append([]request{get("/readyz"), get("/api/v1/namespaces/none/pods/none"), get("/apis/none.example.com/v1/things")}, passes...)
	for _, b := range bypasses {
		sent = append(sent, b.request)
	}
	try := func() (all []answer) {
		for _, c := range []*client{observed, withoutNode} {
			for _, r := range sent {
				all = append(all, send(t, c, r))
			}
		}
		return all
	}
	before := try()
	for _, spec := range []v1alpha1.NodeScopeSpec{bypassScope, {AsNode: true}, {}} {
		spec.Subjects, spec.Mode = []v1alpha1.Subject{{Namespace: bypassNamespace, Name: "observed"}}, v1alpha1.Observe
		enforceScope(t, "observed", spec)
		refusals := plane.observed(t)
		after := try()
		if plane.observed(t) == refusals {
			t.Error("the server observed nothing")
		}
		for i := range before {
			if difference := after[i].differs(before[i]); difference != "" {
				t.Errorf("%s: in the mode Observe, and without a scope: %s", sent[i%len(sent)], difference)
			}
		}
	}
}

// observed returns how many requests of the account the first server has counted in the mode Observe.
func (w *world) observed(t *testing.T) (sum float64) {
	t.Helper()
	text, err := w.servers[0].Metrics(t.Context())
	must(t, err)
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.HasPrefix(series, "node_authorizer_nodescope_refusals_total{") &&
			strings.Contains(series, `account="bypass/observed"`) && strings.Contains(series, `mode="Observe"`) {
			number, err := strconv.ParseFloat(value, 64)
			must(t, err)
			sum += number
		}
	}
	return sum
}
