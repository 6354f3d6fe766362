package attackpaths_test

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// configureWebhooks leads to cluster-admin through mutating webhooks, and to what is written through validating ones.
// Only what exists can be changed.
func (n *naive) configureWebhooks() {
	may := func(kind, resource string) fact {
		var asks []ask
		for _, name := range n.c.Inventory.Names(kind) {
			asks = append(asks, ask{verbs: changing, group: admissionGroup, resource: resource, name: name.Name})
		}
		f := fact{"configures", "", resource}
		n.step(0, false, f, n.creates(ask{verbs: creating, group: admissionGroup, resource: resource}))
		if len(asks) > 0 {
			n.step(0, false, f, n.right(asks...))
		}
		return f
	}
	n.step(1, true, clusterAdmin, may("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"))
	for s := range n.secrets {
		n.step(1, true, secretOf(s), may("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"))
	}
}

// newNamespaces leads to nodes: who makes a namespace labels it, so that Pod Security lets every pod pass.
func (n *naive) newNamespaces() {
	for _, w := range []inventory.Write{
		{Resource: "pods"},
		{Resource: "replicationcontrollers"},
		{Group: "apps", Resource: "deployments"},
		{Group: "apps", Resource: "daemonsets"},
		{Group: "apps", Resource: "statefulsets"},
		{Group: "apps", Resource: "replicasets"},
		{Group: "batch", Resource: "jobs"},
		{Group: "batch", Resource: "cronjobs"},
	} {
		guarded := slices.ContainsFunc(n.c.Inventory.Admission(), func(a inventory.Admission) bool {
			a.Namespaces = nil // in the new namespace
			return a.Covers(inventory.Write{Operation: admissionv1.Create, Resource: "namespaces"}, nil) ||
				a.Covers(inventory.Write{Operation: admissionv1.Create, Resource: "pods", Namespaced: true}, nil) ||
				a.Covers(inventory.Write{Operation: admissionv1.Create, Group: w.Group, Resource: w.Resource, Namespaced: true}, nil)
		})
		for _, node := range n.nodes {
			n.step(1, guarded, fact{attackpaths.Node, "", node.Name}, n.creates(ask{verbs: creating, resource: "namespaces"}),
				n.creates(ask{verbs: creating, group: w.Group, resource: w.Resource}))
		}
	}
}
