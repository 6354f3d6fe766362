package attackpaths

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// needs is what a request must be so that a rule of a scope lets it pass.
type needs uint8

const (
	// needsName: the object has the name of the node.
	needsName needs = 1 << iota
	// needsNewName: the object that is created gets the name of the node.
	needsNewName
	// needsPod: the object is a pod on the node.
	needsPod
	// needsSelector: the request selects objects by a field that has the name of the node.
	needsSelector
	// needsAsNode: the Node authorizer and NodeRestriction allow it to the node.
	needsAsNode
	// needsPodName: the object has the namespace and the name of a pod on the node.
	needsPodName
	// needsNewPodName: the object that is created gets them.
	needsNewPodName
)

// pass is a part of a kind of request that rules let pass. The empty namespace and name are all.
type pass struct {
	limit
	needs needs
	// rules are the scopes and their rules, for people.
	rules string
}

// and is what two passes have in common.
func (p pass) and(o pass) (pass, bool) {
	l, ok := p.limit.and(o.limit)
	rules := p.rules
	if rules != "" && o.rules != "" {
		rules += " and "
	}
	return pass{l, p.needs | o.needs, rules + o.rules}, ok
}

// combinePasses intersects two lists. Of passes that let the same through, one is kept.
func combinePasses(some, others []pass) []pass {
	var all []pass
	seen := map[pass]bool{}
	for _, p := range some {
		for _, o := range others {
			both, ok := p.and(o)
			id := both
			id.rules = ""
			if ok && !seen[id] {
				seen[id] = true
				all = append(all, both)
			}
		}
	}
	return all
}

// scopeRules are the rules of one scope.
type scopeRules struct {
	scope             string
	rules             []scopeRule
	asNode, otherwise bool
}

type scopeRule struct {
	rbacv1.PolicyRule
	// kind is the field of the scope, and name the rule: "anywhere[0]".
	kind, name string
	namespaces []string
	field      string
}

// The kinds of rules, by the fields of a NodeScope.
const (
	ruleNamedAsNode = "namedAsNode"
	ruleSelectsNode = "selectsNode"
	rulePodsOnNode  = "podsOnNode"
	ruleAnywhere    = "anywhere"
	ruleAsNode      = "asNode"
	ruleOtherwise   = "otherwise"
)

// newScopeRules reads what a scope lets pass with a token of the node "n".
func newScopeRules(scope string, passing []nodescope.Passing) scopeRules {
	s := scopeRules{scope: scope}
	for _, p := range passing {
		if p.Scope != scope {
			continue
		}
		kind, _, _ := strings.Cut(p.Rule, "[")
		switch kind {
		case ruleAsNode:
			s.asNode = true
		case ruleOtherwise:
			s.otherwise = true
		default:
			s.rules = append(s.rules, scopeRule{
				PolicyRule: rbacv1.PolicyRule{
					APIGroups: p.APIGroups, Resources: p.Resources, ResourceNames: p.ResourceNames, Verbs: p.Verbs,
					NonResourceURLs: p.NonResourceURLs,
				},
				kind: kind, name: p.Rule, namespaces: p.Namespaces, field: strings.TrimSuffix(p.FieldSelector, "=n"),
			})
		}
	}
	return s
}

// letsAll reports whether the scope lets everything pass with a token of a node.
func (s *scopeRules) letsAll() bool {
	limits := slices.ContainsFunc(s.rules, func(r scopeRule) bool { return r.kind != ruleAnywhere })
	return s.otherwise && !s.asNode && !limits || slices.ContainsFunc(s.rules, func(r scopeRule) bool {
		return r.kind == ruleAnywhere && len(r.namespaces) == 0 && grantsEverything(&r.PolicyRule)
	})
}

// asked is a kind of request, with one verb.
type asked struct {
	kind *requestKind
	verb string
}

// associates reports whether requests let the node of a token be impersonated. The checks have no node, so that a scope lets
// all of them pass or none.
func (k *requestKind) associates() bool { return k.on == associatedNode || k.mode == associatedNode }

// passes lists what a scope lets pass of a kind of request.
func (b *builder) passes(s *scopeRules, q asked) []pass {
	if q.kind.associates() {
		if s.asNode || s.otherwise {
			return []pass{{rules: s.title(ruleAsNode)}}
		}
		return nil
	}
	if q.kind.whole {
		return b.passesWhole(s, q.kind.on)
	}
	var all []pass
	everywhere, named := s.otherwise, []string{}
	for i := range s.rules {
		r := &s.rules[i]
		covered := r.passes(s.title(r.name), q)
		all = append(all, covered...)
		if r.kind != ruleAnywhere && s.otherwise && r.names(q) {
			everywhere = everywhere && len(r.namespaces) > 0
			named = append(named, r.namespaces...)
		}
	}
	if s.asNode {
		ofNodes := b.cluster.namedByNodeAuthorizer(q)
		if q.kind.on == 0 && (isAskedOfNodes(q) || q.kind.custom && ofNodes) {
			all = append(all, pass{needs: needsAsNode, rules: s.title(ruleAsNode)})
		}
		everywhere = everywhere && !ofNodes
	}
	switch {
	case !everywhere:
	case len(named) == 0 || !q.kind.namespaced:
		all = append(all, pass{rules: s.title(ruleOtherwise)})
	default:
		for _, ns := range b.namespaces {
			if !slices.Contains(named, ns) {
				all = append(all, pass{limit: limit{namespace: ns}, rules: s.title(ruleOtherwise)})
			}
		}
	}
	return all
}

// passesWhole is passes for every request in a mode of constrained impersonation.
func (b *builder) passesWhole(s *scopeRules, m mode) []pass {
	whole := pass{}
	for i := range b.kinds {
		k := &b.kinds[i]
		if k.on != m || k.whole {
			continue
		}
		all := b.passes(s, asked{k, k.verbs[0]})
		place := slices.IndexFunc(all, func(p pass) bool { return p.limit == limit{} && p.needs == 0 })
		if place < 0 {
			return nil
		}
		whole = all[place]
	}
	return []pass{whole}
}

func (s *scopeRules) title(rule string) string { return "NodeScope " + s.scope + " (" + rule + ")" }

// names reports whether a rule names a kind of request in some namespace.
func (r *scopeRule) names(q asked) bool {
	without := r.PolicyRule
	without.ResourceNames = nil
	return (q.kind.namespaced || len(r.namespaces) == 0) && len(q.kind.namesIn(&without, q.verb)) > 0
}

// passes lists what a rule lets pass.
func (r *scopeRule) passes(title string, q asked) []pass {
	needs, ok := r.needsOf(q)
	if !ok || len(r.namespaces) > 0 && !q.kind.namespaced {
		return nil
	}
	namespaces := r.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var all []pass
	for _, name := range q.kind.namesIn(&r.PolicyRule, q.verb) {
		for _, ns := range namespaces {
			all = append(all, pass{limit{ns, name}, needs, title})
		}
	}
	return all
}

// needsOf is what a rule requires of a request; false if it lets none pass.
func (r *scopeRule) needsOf(q asked) (needs, bool) {
	nameless, named := q.kind.byName(q.verb)
	isPods := q.kind.group == "" && q.kind.resource == "pods"
	creates := q.kind.subresource == "" && q.verb == "create"
	switch r.kind {
	case ruleNamedAsNode:
		if creates {
			return needsNewName, true
		}
		return needsName, named
	case ruleSelectsNode:
		if r.field == metav1.ObjectNameField {
			return needsName, nameless
		}
		return needsSelector, nameless
	case rulePodsOnNode: // about pods, or about objects that are named like pods
		switch {
		case isPods:
			return needsPod, named
		case creates:
			return needsNewPodName, q.kind.namespaced
		}
		return needsPodName, q.kind.namespaced && named
	}
	return 0, true
}

// isAskedOfNodes reports whether the Node authorizer and NodeRestriction may allow a request that
// the techniques of the table need.
func isAskedOfNodes(q asked) bool {
	switch q.kind.group + "/" + q.kind.resource + "/" + q.kind.subresource {
	case "/secrets/":
		return slices.Contains(read, q.verb)
	case "/serviceaccounts/token":
		return q.verb == "create"
	case certG + "/certificatesigningrequests/":
		return q.verb == "create" || slices.Contains(read, q.verb)
	}
	return false
}

// namedByNodeAuthorizer reports whether the Node authorizer has a rule for a request.
func (c *Cluster) namedByNodeAuthorizer(q asked) bool {
	req := &access.Request{
		ResourceRequest: true, Verb: q.kind.on.verbOn(q.verb), Group: q.kind.group, Resource: q.kind.resource,
		Subresource: q.kind.subresource, Name: "name",
	}
	if q.kind.namespaced {
		req.Namespace = "namespace"
	}
	answer := nodeauthz.New(c.Relations, c.Features).DecideAs("node", req)
	switch answer.Code {
	case nodeauthz.NoRuleForResource, nodeauthz.SubresourceNotAllowed, nodeauthz.VerbNotAllowed, nodeauthz.FeatureDisabled:
		return answer.Decision == verdict.Allow
	}
	return true
}

// requestsScopedToken gives an account in scopes with a token to who may request it: bound to any node,
// or before 1.31 to a pod. Who may also create pods chooses a name that no node needs to have.
// Source: KEP-4193.
func (b *builder) requestsScopedToken(v vertex, namespace, name, guards string) {
	a := b.scopeOf(namespace, name)
	if b.cluster.Features.Minor() >= 31 {
		b.step(TokenRequest, v, b.tokenVertex(namespace, name, b.fact(everyNodeUser, ""), 0), -1, guards)
	} else {
		for _, i := range b.podsIn[namespace] {
			if p := b.pods[i]; p.ServiceAccount == name && p.Node != "" {
				b.step(TokenRequest, v, b.tokenVertex(namespace, name, b.nodeUserVertex(p.Node), 0), -1, guards)
			}
		}
	}
	if b.partsOf(a); len(a.perNode) > 0 || b.cluster.Features.Minor() < 31 {
		pods := b.vertex(key{kind: isNamespace, name: namespace})
		b.together(TokenRequest, b.tokenVertex(namespace, name, b.fact(nodeNamed, ""), 0), guards, v, pods)
	}
}

// impersonateOnNodes gives accounts in scopes with the name of a node to who may impersonate both.
func (c *combiner) impersonateOnNodes() {
	if c.enforced == 0 {
		return
	}
	for _, n := range c.have(impersonateNodeNames) {
		node := c.fact(nodeNamed, n.name)
		if n.name != "" && c.has(key{kind: isNode, name: n.name}) {
			node = c.nodeUserVertex(n.name)
		}
		for _, u := range c.have(impersonateServiceAccounts) {
			for _, ns := range slices.Sorted(maps.Keys(c.accountNames)) {
				for _, name := range c.accountNames[ns] {
					if c.scopeOf(ns, name) != nil && u.covers(ns, name) {
						c.pair(Impersonate, c.tokenVertex(ns, name, node, impersonated), "", u, n)
					}
				}
			}
		}
	}
}

// passOnRules adds what an account in scopes holds by RBAC to roles that some identity holds, see bind.
func (c *combiner) passOnRules() {
	if c.who.scoped == nil {
		return
	}
	for _, w := range c.have(updateClusterRoles, updateRoles) {
		c.heldRoles(w.right == updateClusterRoles, func(v vertex, k key, role *rbac.RoleRules) {
			if k.variant == heldInScopes && k.name == c.who.scoped.user() || !w.covers(role.Role.Namespace, role.Role.Name) {
				return // it has these rules, or may not change them
			}
			for _, h := range c.who.scoped.held {
				if h.namespace == "" || h.namespace == role.Role.Namespace {
					c.passOn(EscalateRole, c.ownRole(h.role, k.namespace), c.changedRoleGuards(w.right, k.role), w, v)
				}
			}
		})
	}
}

// passOn adds a step with one right of an account in scopes, and perhaps a role that is held.
func (c *combiner) passOn(code Code, to vertex, guards string, w held, role vertex) {
	c.add(code, to, guards, []held{w}, []vertex{c.who.vertex, w.through, role})
}

// holdsRules reports whether RBAC grants to the account every rule of a role in a scope.
func (c *combiner) holdsRules(role int32, namespace string) bool {
	var have []rbacv1.PolicyRule
	for _, h := range c.who.scoped.held {
		if h.namespace == "" || h.namespace == namespace {
			have = append(have, c.roles[h.role].Rules...)
		}
	}
	covered, _ := validation.Covers(have, c.roles[role].Rules)
	return covered
}
