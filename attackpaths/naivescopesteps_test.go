package attackpaths_test

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// asNodes are the steps of what scopes let pass because the Node authorizer and NodeRestriction allow it to
// the node.
func (n *naive) asNodes() {
	for _, i := range n.identities {
		if i.token == nil {
			continue
		}
		asTheNode := func(q request) bool {
			return n.allows(naiveIdentity{user: i.user, groups: i.groups}, q) && i.token.passes(n, q, naiveWay{asNode: true})
		}
		for _, p := range n.pods {
			token := request{"create", "", "serviceaccounts", "token", p.Namespace, p.ServiceAccount}
			if p.Node == i.token.node && n.mints(p) && asTheNode(token) {
				n.step(
					1,
					n.guarded(admissionv1.Create, "", "serviceaccounts", "token", p.Namespace),
					n.tokenOf(accountOfPod(p), p.Node),
					as(i.fact),
				)
			}
		}
		// Volumes refer to secrets that need not be known otherwise.
		for _, s := range n.c.Relations.Objects(i.token.node, graph.Secret) {
			if asTheNode(request{verb: "get", resource: "secrets", ns: s.Namespace, name: s.Name}) {
				n.step(1, false, fact{attackpaths.Secret, s.Namespace, s.Name}, as(i.fact))
			}
		}
		if asTheNode(request{verb: "create", group: certificatesGroup, resource: "certificatesigningrequests"}) {
			n.step(0, false, requestsCanBeMade, as(i.fact))
			n.ownCertificate(i)
		}
	}
}

// ownCertificate leads to the credential of the token's node.
func (n *naive) ownCertificate(i naiveIdentity) {
	requests := ask{verbs: creating, group: certificatesGroup, resource: "certificatesigningrequests", sub: "nodeclient"}
	if n.has(i, []ask{requests}) == attackpaths.No {
		return
	}
	made := n.guarded(admissionv1.Create, certificatesGroup, "certificatesigningrequests", "", "")
	for _, name := range append(n.allNames(), anyOtherName) {
		read := n.readsRequest(name)
		if n.isNode(i.token.node) {
			n.step(1, made, cred(i.token.node), as(i.fact), read)
		}
	}
}

func accountOfPod(p *inventory.Pod) inventory.Name {
	return inventory.Name{Namespace: p.Namespace, Name: p.ServiceAccount}
}

// namesInScopes are the names of objects that scopes are about.
func (n *naive) namesInScopes() []string {
	var all []string
	for _, s := range n.scopes {
		for _, r := range s.Spec.Anywhere {
			all = append(all, r.ResourceNames...)
		}
	}
	if !n.enforces() {
		return all
	}
	for _, node := range n.nodes {
		all = append(all, node.Name)
	}
	for _, p := range n.pods {
		all = append(all, p.Name.Name)
	}
	return all
}

// namesOfNodes are the nodes, and the names that rules let requests use for nodes.
func (n *naive) namesOfNodes() []string {
	var all []string
	for _, node := range n.nodes {
		all = append(all, node.Name)
	}
	add := func(groups, resources, verbs, names []string) {
		extra := request{verb: "impersonate", group: identityGroup, resource: "userextras", sub: nodeNameExtra}
		if covers(extra, groups, resources, verbs, nil, nil) {
			all = append(all, names...)
		}
	}
	for _, r := range n.roles {
		for _, rule := range r.rules {
			add(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames)
		}
	}
	for _, s := range n.scopes {
		for _, rule := range s.Spec.Anywhere {
			add(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

const nodeNameExtra = "authentication.kubernetes.io/node-name"

// impersonateTokens leads to accounts that are impersonated with the name of a node.
func (n *naive) impersonateTokens() {
	extra := func(name string) []ask {
		return []ask{{
			verbs: verbs("impersonate"), group: identityGroup, resource: "userextras",
			sub: nodeNameExtra, name: name, unlimited: name == chosenNode,
		}}
	}
	nodes := append(n.namesOfNodes(), chosenNode)
	for _, a := range n.scopedAccounts {
		account := []ask{{verbs: verbs("impersonate"), resource: "serviceaccounts", ns: a.Namespace, name: a.Name}}
		for _, node := range nodes {
			n.step(1, false, as(n.tokenOf(a, node)), n.together(account, extra(node)))
		}
	}
}

// passOn gives what RBAC grants to an account in scopes to other identities.
func (n *naive) passOn() {
	for _, i := range n.identities {
		if i.token == nil {
			continue
		}
		n.static(i.user, i.groups, func(r naiveRole, where string) {
			for _, ns := range append(n.sortedNamespaces(), "") {
				if where != "" && where != ns || r.ref.Namespace != "" && r.ref.Namespace != ns {
					continue
				}
				create, guarded := ask{verbs: creating, group: rbacGroup, resource: bindingsIn(ns), ns: ns}, n.newBindingGuarded(r.ref, ns)
				n.passOnBy(i, [][]ask{{create}}, guarded, r, ns)
				for _, name := range n.allNames() {
					if n.isFree(create, name) {
						n.passOnBy(i, byName(create, name), true, r, ns)
						continue
					}
					n.lost = isBinding(ns, name)
					n.passOnBy(i, byName(create, name), true, r, ns, n.deleted(create, name))
					n.lost = nil
				}
			}
			n.passOnRules(i, r, where)
		})
		for _, b := range n.bindings {
			ns := b.Binding.Namespace
			if r, ok := n.roleOf(b); ok && n.holdsRules(i, r, ns) {
				change := [][]ask{{{verbs: changing, group: rbacGroup, resource: bindingsIn(ns), ns: ns, name: b.Binding.Name}}}
				n.passOnBy(i, change, n.changedBindingGuarded(b), r, ns)
			}
		}
	}
}

func bindingsIn(ns string) string {
	if ns == "" {
		return "clusterrolebindings"
	}
	return "rolebindings"
}

// passOnBy gives a role in a namespace to who has each of some rights.
func (n *naive) passOnBy(i naiveIdentity, parts [][]ask, guarded bool, r naiveRole, ns string, others ...fact) {
	from, possible := append(others, as(i.fact)), guarded
	for _, asks := range parts {
		switch yes := n.has(i, asks); {
		case yes > attackpaths.No:
			possible = possible || yes == attackpaths.Possible
		case n.lost == nil && n.canBeOwned(asks):
			from, possible = append(from, n.ownedRight(asks)), true
		default:
			return
		}
	}
	n.step(1, possible, owned(r.ref, ns), from...)
}

// passOnRules adds what the account holds in a namespace to a role that some identity holds.
func (n *naive) passOnRules(i naiveIdentity, r naiveRole, where string) {
	n.eachOwned(func(to naiveRole, scope string) {
		if to.ref == everythingRole || where != "" && where != to.ref.Namespace {
			return
		}
		change := [][]ask{{{
			verbs: changing, group: rbacGroup, resource: strings.ToLower(to.ref.Kind) + "s", ns: to.ref.Namespace, name: to.ref.Name,
		}}}
		n.passOnBy(i, change, n.changedRoleGuarded(to), r, scope, heldRole(to.ref, scope))
		for _, a := range n.scopedAccounts {
			if a != i.token.account {
				n.passOnBy(i, change, n.changedRoleGuarded(to), r, scope, heldInScopes(to.ref, scope, a))
			}
		}
	})
}

// heldInScopes is that an account in scopes holds a role: what is added to it counts as far as they let it pass.
func heldInScopes(role rbac.Ref, scope string, a inventory.Name) fact {
	f := heldRole(role, scope)
	f.kind += " by " + a.String()
	return f
}

// holdsRules reports whether RBAC grants every rule of a role to an account.
func (n *naive) holdsRules(i naiveIdentity, r naiveRole, ns string) bool {
	var have []rbacv1.PolicyRule
	n.static(i.user, i.groups, func(held naiveRole, where string) {
		if where == "" || where == ns {
			have = append(have, held.rules...)
		}
	})
	for _, rule := range r.rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{"\x00every"}
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						resource, sub, _ := strings.Cut(resource, "/")
						q := request{verb: verb, group: group, resource: resource, sub: sub, name: name}
						if !slices.ContainsFunc(have, func(h rbacv1.PolicyRule) bool {
							return covers(q, h.APIGroups, h.Resources, h.Verbs, h.ResourceNames, nil)
						}) {
							return false
						}
					}
				}
			}
		}
	}
	return true
}
