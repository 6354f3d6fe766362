package attackpaths

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// A node gets tokens of the accounts of its pods for the audiences that these pods name. For another one, NodeRestriction
// asks whether the node has a right of which the audience is the resource and the account the name.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
const (
	audienceVerb = "request-serviceaccounts-token-audience"
	// anyAudience is the resource of rights to request audiences.
	anyAudience = "*"
)

// audienceIn is the audience that a rule has to cover. A request does not name the API server's own audience; only the API server
// knows whether a named one is its own too. A rule for every verb is about resources, unless it is about all of these.
func audienceIn(r right, rule *rbacv1.PolicyRule) (audience string, ok bool) {
	if r.whole() == requestAudience {
		return "", true
	}
	if len(rule.Resources) == 0 || !slices.Contains(rule.Verbs, audienceVerb) {
		return "", false
	}
	return rule.Resources[0], true
}

// givesAudiences reports whether the attacker can give audiences to nodes.
func (b *builder) givesAudiences() bool {
	for k := range b.own {
		if k.right == requestAudience || k.right == requestOtherAudience {
			return true
		}
	}
	return false
}

// audiences leads from a node that may request audiences to what it gets by them.
func (c *combiner) audiences() {
	if c.who.vertex == none || c.keys[c.who.vertex].kind != isNodeUser {
		return
	}
	for _, h := range c.have(requestAudience, requestOtherAudience) {
		of := key{kind: isRight, variant: uint8(h.right), namespace: h.namespace, name: h.name, of: c.who.vertex}
		c.add("", c.vertex(of), "", []held{h}, []vertex{c.who.vertex, h.through})
	}
}

// requestsAudience gives the accounts of pods on a node whose tokens it cannot request otherwise.
func (b *builder) requestsAudience(v vertex, k key, dependsOn string) {
	node := strings.TrimPrefix(b.keys[k.of].name, nodeUserPrefix)
	for _, i := range b.podsOn[node] {
		p := b.pods[i]
		if (limit{namespace: k.namespace, name: k.name}).covers(p.Namespace, p.ServiceAccount) && !b.mints(p) && b.hasTokens(p) {
			guards := allOf(dependsOn, b.guardsOf(createToken, p.Namespace))
			b.step(TokenOfPodOnNode, v, b.tokenOfPod(p, node), i, guards)
		}
	}
}
