package attackpaths_test

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

const (
	identityGroup = "authentication.k8s.io"
	isNodeName    = "system:node:"
	onNode        = "associated-node"
)

// impersonation is a requester that may act as another identity in a mode.
type impersonation struct {
	// requester has no fact if all its rights come from roles that the attacker owns.
	requester naiveIdentity
	mode      string
	target    naiveIdentity
	// from are the requester and the owned rights that it needs.
	from []fact
	// owned is true if it has none of the rights to impersonate by a binding.
	owned bool
}

// associated is a token of an account that is bound to a pod on a node, or to the node.
func associated(account inventory.Name, node string) fact {
	return fact{"token associated with " + node, account.Namespace, account.Name}
}

// associations lead to the tokens of accounts that are associated with nodes.
func (n *naive) associations() {
	for _, i := range n.identities {
		for _, node := range n.nodes {
			if f := i.fact; f.kind == attackpaths.ServiceAccount {
				n.step(0, false, f, associated(inventory.Name{Namespace: f.namespace, Name: f.name}, node.Name))
			}
		}
	}
	for a := range n.accounts {
		for _, node := range n.nodes {
			token := associated(a, node.Name)
			n.step(1, n.guarded(admissionv1.Create, "", "serviceaccounts", "token", a.Namespace), token,
				n.right(ask{verbs: creating, resource: "serviceaccounts", sub: "token", ns: a.Namespace, name: a.Name}))
			for _, p := range n.pods {
				if p.Node == node.Name && p.Namespace == a.Namespace && p.ServiceAccount == a.Name && !p.Mirror && len(p.Audiences) > 0 {
					n.step(1, !slices.Contains(p.Audiences, ""), token, podHolding(p))
					n.step(0, true, token, accountOf(a))
				}
			}
		}
	}
}

// impersonate lists who may act as whom.
func (n *naive) impersonate() {
	if !n.c.Features.Enabled(kubeversion.ConstrainedImpersonation) {
		return
	}
	for _, i := range append([]naiveIdentity{{}}, n.identities...) {
		for _, target := range n.identities {
			n.impersonateAs(i, target)
		}
	}
	for _, i := range n.identities {
		for _, node := range n.nodes {
			if i.fact.kind == attackpaths.ServiceAccount {
				of := i
				of.fact = associated(inventory.Name{Namespace: i.fact.namespace, Name: i.fact.name}, node.Name)
				n.may(of, onNode, n.credentialOf(node.Name), []ask{{verbs: verbs("impersonate:" + onNode), resource: "nodes", name: "*"}})
			}
		}
	}
}

func (n *naive) credentialOf(node string) naiveIdentity {
	return n.identities[slices.IndexFunc(n.identities, func(i naiveIdentity) bool { return i.fact == cred(node) })]
}

// plainUser reports whether a user is neither a node nor a service account.
func plainUser(name string) bool {
	return !strings.HasPrefix(name, isNodeName) && !strings.HasPrefix(name, isAccount)
}

func (n *naive) impersonateAs(i, target naiveIdentity) {
	userInfo := verbs("impersonate:user-info")
	switch f := target.fact; {
	case target.node:
		n.may(i, "arbitrary-node", target, []ask{{verbs: verbs("impersonate:arbitrary-node"), resource: "nodes", name: f.name}})
	case f.kind == attackpaths.ServiceAccount:
		n.may(i, "serviceaccount", target, []ask{{
			verbs: verbs("impersonate:serviceaccount"), resource: "serviceaccounts", ns: f.namespace, name: f.name,
		}})
	case f.kind == attackpaths.User && plainUser(f.name) && n.users[f.name]:
		n.may(i, "user-info", target, []ask{{verbs: userInfo, resource: "users", name: f.name}})
	case f.kind == attackpaths.Group && f.name != "*":
		users := []ask{{verbs: userInfo, resource: "users", name: anyOtherName}}
		for _, name := range n.allNames() {
			if plainUser(name) {
				users = append(users, ask{verbs: userInfo, resource: "users", name: name})
			}
		}
		// Of four groups in one request, the API server first checks the group *.
		groups := []ask{{verbs: userInfo, resource: "groups", name: f.name}, {verbs: userInfo, resource: "groups", name: "*"}}
		if !n.groups[f.name] {
			groups = []ask{{verbs: userInfo, resource: "groups", name: f.name, limited: true}}
		}
		n.may(i, "user-info", target, users, groups)
	}
}

// may adds an impersonation if there may be a right of each kind.
func (n *naive) may(i naiveIdentity, mode string, target naiveIdentity, kinds ...[]ask) {
	w := impersonation{requester: i, mode: mode, target: target, owned: true}
	if i.fact != (fact{}) {
		w.from = append(w.from, i.fact)
	}
	for _, asks := range kinds {
		for j := range asks {
			// Everything in a namespace contains the right to impersonate without constraint.
			asks[j].group, asks[j].notEverything = identityGroup, true
		}
		switch {
		case n.hasStatic(i, asks):
			w.owned = false
		case n.canBeOwned(asks):
			w.from = append(w.from, n.ownedRight(asks))
		default:
			return
		}
	}
	n.impersonations = append(n.impersonations, w)
}

// hasStatic reports whether a binding gives a requester one of the rights.
func (n *naive) hasStatic(i naiveIdentity, asks []ask) (yes bool) {
	if i.fact != (fact{}) {
		n.static(i.user, i.groups, func(r naiveRole, scope string) {
			yes = yes || !(r.everything && scope == "") && r.grants(asks, scope, i.node)
		})
	}
	return yes
}

// canBeOwned reports whether a role gives one of the rights. A role with all rights in a namespace
// does not count: it gives more than constrained impersonation.
func (n *naive) canBeOwned(asks []ask) (yes bool) {
	n.eachOwned(func(r naiveRole, scope string) { yes = yes || !r.everything && r.grants(asks, scope, false) })
	return yes
}

// request is a single request. The name of a deletecollection is in a field selector alone.
type request struct{ verb, group, resource, sub, ns, name string }

const deletingAll = "deletecollection"

// seen is the request as authorizers see it, without a selector.
func (q request) seen() request {
	if q.verb == deletingAll {
		q.name = ""
	}
	return q
}

// requests lists single requests of which the attacker needs one.
func (n *naive) requests(asks []ask) []request {
	var all []request
	for _, a := range asks {
		if n.ending[a.ns] && a.creates() {
			continue
		}
		for _, verb := range a.verbs {
			var names []string
			if a.nameless(verb) {
				names = append(names, "")
			}
			switch {
			case verb == "create" && a.nameless(verb):
			case a.anyName:
				names = append(append(names, n.allNames()...), anyOtherName)
			case a.unlimited:
				names = append(names, anyOtherName)
			default:
				names = append(names, a.name)
			}
			for _, name := range names {
				all = append(all, request{verb, a.group, a.resource, a.sub, a.ns, name})
			}
		}
	}
	return all
}

// allows reports whether RBAC and NodeRestriction let an identity make a request.
func (n *naive) allows(i naiveIdentity, q request) (yes bool) {
	if i.node && refusedToNodes(q.verb, q.resource, q.sub) {
		return false
	}
	n.static(i.user, i.groups, func(r naiveRole, scope string) {
		yes = yes || (scope == "" || scope == q.ns) && slices.ContainsFunc(r.rules, func(rule rbacv1.PolicyRule) bool {
			return rbac.RuleAllows(&rule, &access.Request{
				Verb: q.verb, ResourceRequest: true, Group: q.group, Resource: q.resource, Subresource: q.sub,
				Namespace: q.ns, Name: q.seen().name,
			})
		})
	})
	return yes
}

// on returns what a requester needs for a request as the identity that it impersonates.
func (n *naive) on(w impersonation, q request) ([]fact, bool) {
	q = q.seen()
	asks := []ask{{
		verbs: verbs("impersonate-on:" + w.mode + ":" + q.verb), group: q.group, resource: q.resource, sub: q.sub, ns: q.ns, name: q.name,
	}}
	return n.orOwned(w, n.hasStatic(w.requester, asks), n.canBeOwned(asks), func() fact { return n.ownedRight(asks) })
}

func (n *naive) orOwned(w impersonation, static, canBeOwned bool, owned func() fact) ([]fact, bool) {
	switch {
	case static:
		return w.from, true
	case canBeOwned && (!w.owned || w.requester.fact == (fact{}) || w.mode == onNode):
		return append(slices.Clone(w.from), owned()), true
	}
	return nil, false
}

// rightOfOthers leads to a right through the identities that can be impersonated.
func (n *naive) rightOfOthers(f fact, asks []ask) {
	if asks[0].verbs[0] == "impersonate" {
		return // one who is impersonated cannot impersonate
	}
	for _, w := range n.impersonations {
		for _, q := range n.requests(asks) {
			if n.allows(w.target, q) {
				if from, ok := n.on(w, q); ok {
					n.step(1, false, f, from...)
				}
			}
		}
	}
}

// checkedBeside reports whether rights are checked of who makes another request.
func checkedBeside(asks []ask) bool {
	applied := asks[0].hasName && asks[0].verbs[0] == "create" // the request is a patch or an update
	return applied || slices.Contains(verbs("bind", "escalate", "approve", "sign"), asks[0].verbs[0]) || asks[0].sub == "nodeclient"
}

// togetherOfOthers leads to rights of one identity that can be impersonated: to make a request, and what is checked beside it.
func (n *naive) togetherOfOthers(f fact, parts [][]ask) {
	i := slices.IndexFunc(parts, func(asks []ask) bool { return !checkedBeside(asks) })
	if i < 0 {
		return
	}
	others := slices.Delete(slices.Clone(parts), i, i+1)
	if slices.ContainsFunc(others, func(asks []ask) bool { return !checkedBeside(asks) }) {
		return // one who is impersonated cannot impersonate
	}
	for _, w := range n.impersonations {
		lacks := slices.ContainsFunc(others, func(asks []ask) bool { return !n.checks(w.target, asks) })
		for _, q := range n.requests(parts[i]) {
			if !lacks && n.allows(w.target, q) {
				if from, ok := n.on(w, q); ok {
					n.step(1, false, f, from...)
				}
			}
		}
	}
}

// checks reports whether bindings give an identity a right that is checked beside a request.
func (n *naive) checks(i naiveIdentity, asks []ask) (yes bool) {
	asks = slices.Clone(asks)
	for k := range asks {
		asks[k].limited = asks[k].limited && !asks[k].hasName // who may create any object may create one by its name too
	}
	n.static(i.user, i.groups, func(r naiveRole, scope string) { yes = yes || r.grants(asks, scope, i.node) })
	return yes
}

// otherIdentities leads to identities that can be impersonated for every request, and to what the
// Node authorizer allows those of nodes.
func (n *naive) otherIdentities() {
	for _, w := range n.impersonations {
		static := false
		if w.requester.fact != (fact{}) {
			n.static(w.requester.user, w.requester.groups, func(r naiveRole, scope string) {
				static = static || scope == "" && !r.everything && coversAll(r, w.mode)
			})
		}
		canBeOwned := slices.ContainsFunc(n.roles, func(r naiveRole) bool { return !r.everything && coversAll(r, w.mode) })
		if from, ok := n.orOwned(w, static, canBeOwned, func() fact { return n.ownedWhole(w.mode) }); ok {
			n.step(1, false, as(w.target.fact), from...)
		}
		if w.target.node {
			n.nodeOfOthers(w, w.target.fact.name)
		}
	}
}

// coversAll reports whether a rule is for each request in a mode.
func coversAll(r naiveRole, mode string) bool {
	return slices.ContainsFunc(r.rules, func(rule rbacv1.PolicyRule) bool {
		for _, verb := range strings.Split(everyVerb(mode), ",") {
			if !slices.Contains(rule.Verbs, verb) {
				return false
			}
		}
		return slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*") && len(rule.ResourceNames) == 0
	})
}

func (n *naive) ownedWhole(mode string) fact {
	f := fact{"owned right", "", "every request as " + mode}
	n.eachOwned(func(r naiveRole, scope string) {
		if scope == "" && !r.everything && coversAll(r, mode) {
			n.step(0, false, f, owned(r.ref, scope))
		}
	})
	return f
}

func (n *naive) nodeOfOthers(w impersonation, node string) {
	reach := func(cost int, possible bool, to fact, a ask) {
		for _, q := range n.requests([]ask{a}) {
			if from, ok := n.on(w, q); ok && (q.name != "" || a.resource != "secrets") {
				n.step(cost, possible, to, from...)
			}
		}
	}
	for _, s := range n.c.Relations.Objects(node, graph.Secret) {
		reach(2, false, fact{attackpaths.Secret, s.Namespace, s.Name},
			ask{verbs: reading, resource: "secrets", ns: s.Namespace, name: s.Name})
	}
	for _, p := range n.pods {
		if p.Node == node && n.mints(p) {
			reach(2, n.guarded(admissionv1.Create, "", "serviceaccounts", "token", p.Namespace),
				fact{attackpaths.ServiceAccount, p.Namespace, p.ServiceAccount},
				ask{verbs: creating, resource: "serviceaccounts", sub: "token", ns: p.Namespace, name: p.ServiceAccount})
		}
	}
	signing := ask{group: certificatesGroup, resource: "certificatesigningrequests"}
	signing.verbs = creating
	reach(1, false, requestsCanBeMade, signing)
	signing.verbs = reading
	for _, name := range append(n.allNames(), anyOtherName) {
		signing.name = name
		reach(1, false, n.right(signing), signing)
	}
}
