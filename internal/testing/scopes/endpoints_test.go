package scopes_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestEndpointsOfCiliumFollowTheirPods: the agent of the node where the pod is now may change its endpoint, and no
// agent may once the pod is gone. Owner references and Cilium's operator delete the endpoints that are left.
func TestEndpointsOfCiliumFollowTheirPods(t *testing.T) {
	a := readAgent(t, "cilium")
	scope := a.scope.DeepCopy()
	scope.Spec.Mode = "Enforce"
	compiled, errs := nodescope.Compile(scope)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	g := graph.New()
	authorizer := authorizerOf(compiled, g)
	remove := a.request(t, &dayRequest{
		Verb: "delete", Group: "cilium.io", Resource: "ciliumendpoints", Namespace: appNamespace, Name: "web-0",
	}, own)
	for _, step := range []struct {
		when   string
		node   string // of the pod; empty if there is none
		passes bool
	}{
		{"the pod is on the node, also while it ends", own, true},
		{"the pod was removed without a grace period", "", false},
		{"a pod of that name runs elsewhere", foreign, false},
		{"a pod of that name runs on the node again", own, true},
	} {
		if step.node == "" {
			g.DeletePod(appNamespace, "web-0")
		} else {
			g.SetPod(pod(appNamespace, "web-0", step.node))
		}
		answer := authorizer.Decide(remove)
		refused := answer.Decision == verdict.Deny && answer.Code == nodescope.ScopePodNotOnNode
		if refused == step.passes || answer.Refused() == step.passes {
			t.Errorf("%s: %s", step.when, answer.Code)
		}
	}
}
