package nodescope_test

import (
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// An agent may write the status of its own Node object only.
func Example() {
	scope, errs := nodescope.Compile(&v1alpha1.NodeScope{
		ObjectMeta: metav1.ObjectMeta{Name: "problem-detector"},
		Spec: v1alpha1.NodeScopeSpec{
			Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: "problem-detector"}},
			Mode:     v1alpha1.Enforce,
			NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
			},
		},
	})
	if len(errs) > 0 {
		fmt.Println(errs.ToAggregate())
		return
	}
	var policy atomic.Pointer[nodescope.Policy]
	current, _ := nodescope.NewPolicy([]*nodescope.Scope{scope})
	policy.Store(current)
	g := graph.New()
	a := nodescope.New(&policy, nil, g, nodeauthz.New(g, kubeversion.For(kubeversion.Latest)), nil)

	for _, name := range []string{"worker-1", "worker-2"} {
		answer := a.Decide(&access.Request{
			User:            nodeidentity.ServiceAccountUser("kube-system", "problem-detector"),
			Extra:           map[string][]string{nodeidentity.ExtraNode: {"worker-1"}},
			ResourceRequest: true, Verb: "patch", Resource: "nodes", Subresource: "status", Name: name,
		})
		fmt.Println(name, answer.Decision, answer.Code, answer.Rule)
	}
	// Output:
	// worker-1 NoOpinion ScopePassed namedAsNode[0]
	// worker-2 Deny ScopeNameNotNode namedAsNode[0]
}
