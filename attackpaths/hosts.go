package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// createsNamespaces gives nodes to who creates namespaces, and pods in all: the author of a namespace
// labels it, so that Pod Security lets privileged pods pass.
func (b *builder) createsNamespaces(v vertex, k key) {
	if r := right(k.variant); r >= createPods && r <= createCronJobs {
		b.together(PodCreate, b.fact(everyNode, ""), b.guardsInNew(r), v, b.rightVertex(createNamespaces, "", ""))
	}
}

// guardsInNew names what may be asked about a new namespace, and about pods in it and what makes them.
// The attacker chooses the labels, but which labels a webhook or policy leaves out is not examined.
func (b *builder) guardsInNew(r right) string {
	var texts []string
	for i := range b.admission {
		a := &b.admission[i]
		covers := func(asked right) bool { return a.Covers(writeOf(asked), nil) }
		if slices.ContainsFunc([]right{createNamespaces, createPods, r}, covers) {
			texts = append(texts, a.String())
		}
	}
	return allOf(texts...)
}

// admissionObjects are the names of what guards writes, by the resource: configurations of webhooks, and policies and
// bindings that refuse something.
func (c *Cluster) admissionObjects() map[string][]inventory.Name {
	const policies, bindings = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
	names := map[string][]inventory.Name{
		"mutatingwebhookconfigurations":   c.Inventory.Names("MutatingWebhookConfiguration"),
		"validatingwebhookconfigurations": c.Inventory.Names("ValidatingWebhookConfiguration"),
		policies:                          nil, bindings: nil,
	}
	for _, a := range c.Inventory.Admission() {
		if isPolicy(a) {
			names[policies] = append(names[policies], inventory.Name{Name: a.Name})
			names[bindings] = append(names[bindings], inventory.Name{Name: a.Webhook})
		}
	}
	return names
}

// mayChange reports whether there is an object that a right to change some names of a resource is about; no name and the
// empty one stand for all. The state does not show each resource.
func (g *Graph) mayChange(resource string, names ...string) bool {
	objects, shown := g.guards[resource]
	return !shown || len(objects) > 0 && (len(names) == 0 || slices.Contains(names, "")) ||
		slices.ContainsFunc(objects, func(o inventory.Name) bool { return slices.Contains(names, o.Name) })
}

// mayRun reports whether a pod has a node, or gets one in the state that is asked about, and has not ended.
func mayRun(p *inventory.Pod) bool { return (p.Node != "" || p.Planned) && !p.Ended }

// starting is what else decides about processes that are started in a pod.
func starting(p *inventory.Pod) string {
	if p.Pending {
		return "whether containers of the pod have started, whose phase is Pending"
	}
	return ""
}

// toNothing reports whether a vertex is a right that nothing can be done with.
func (b *builder) toNothing(v vertex) bool {
	k := b.keys[v]
	return k.kind == isRight && b.neverCreates(right(k.variant), k.namespace)
}

// neverCreates reports whether a right is one to create something in a namespace that terminates: the API server creates
// nothing in it, not even a token, also for kubelets.
func (b *builder) neverCreates(r right, namespace string) bool {
	return b.terminating[namespace] && (b.kinds[r].unnamed || r == createToken)
}
