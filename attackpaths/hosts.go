package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// volumesOfHost gives nodes to who creates a volume that is a folder of the host, and pods that claim
// it. A controller makes the claim of an ephemeral volume; a claim that the attacker makes may pass
// other policies.
func (b *builder) volumesOfHost(v vertex, k key) {
	// Pod Security does not look at persistent volumes, but restricted pods do not run as root.
	condition := allOf(b.guardsOf(createVolumes, ""), b.guardsOf(createClaims, k.name), b.otherUser(k.name))
	volumes := b.rightVertex(createVolumes, "", "")
	everyNode := b.fact(everyNode, "")
	b.together(VolumeControl, everyNode, allOf(condition, b.useGuards(k, mountsEphemeral, "")), v, volumes)
	if b.evaluatesPolicies() {
		b.together(VolumeControl, everyNode, allOf(condition, b.useGuards(k, mountsClaim, "")), v, volumes,
			b.rightVertex(createClaims, k.name, ""))
	}
}

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
		a := b.admission[i]
		a.Namespaces = nil
		covers := func(asked right) bool { return a.Covers(writeOf(asked), nil) }
		if slices.ContainsFunc([]right{createNamespaces, createPods, r}, covers) {
			texts = append(texts, a.String())
		}
	}
	return allOf(texts...)
}

// admissionObjects are the names of what guards writes, by the resource: configurations of webhooks, and policies and
// bindings that refuse something.
func (c *Cluster) admissionObjects() map[string][]string {
	names := map[string][]string{
		"mutatingwebhookconfigurations":   c.Inventory.WebhookConfigurations("MutatingWebhookConfiguration"),
		"validatingwebhookconfigurations": c.Inventory.WebhookConfigurations("ValidatingWebhookConfiguration"),
	}
	const policies, bindings = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
	names[policies], names[bindings] = nil, nil
	for _, a := range c.Inventory.Admission() {
		if isPolicy(a) {
			names[policies], names[bindings] = append(names[policies], a.Name), append(names[bindings], a.Webhook)
		}
	}
	return names
}

// mayChange reports whether there is an object that a right to change some names of a resource is about; no name and the
// empty one stand for all. The state does not show each resource.
func (g *Graph) mayChange(resource string, names ...string) bool {
	objects, shown := g.guards[resource]
	return !shown || len(objects) > 0 && (len(names) == 0 || slices.Contains(names, "")) ||
		slices.ContainsFunc(names, func(name string) bool { return slices.Contains(objects, name) })
}

// mayRun reports whether a pod has a node, or gets one in the state that is asked about, and has not ended.
func mayRun(p *inventory.Pod) bool { return (p.Node != "" || p.Planned) && !p.Ended }

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
