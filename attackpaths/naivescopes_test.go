package attackpaths_test

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// naiveToken is a token of an account in scopes, with the name of a node.
type naiveToken struct {
	account inventory.Name
	node    string
	scopes  []*v1alpha1.NodeScopeSpec
}

// Nodes of tokens that are none of the cluster.
const (
	// someNode is not known: the token is that of some pod.
	someNode = "some node"
	// chosenNode is a name that the attacker chooses.
	chosenNode = "a chosen node"
)

// scopesOf are the enforced scopes about an account.
func (n *naive) scopesOf(a inventory.Name) []*v1alpha1.NodeScopeSpec {
	var all []*v1alpha1.NodeScopeSpec
	for _, s := range n.scopes {
		about := func(x v1alpha1.Subject) bool { return x.Namespace == a.Namespace && (x.Name == "" || x.Name == a.Name) }
		if s.Spec.Mode == v1alpha1.Enforce && slices.ContainsFunc(s.Spec.Subjects, about) {
			all = append(all, &s.Spec)
		}
	}
	return all
}

func (n *naive) isScoped(a inventory.Name) bool { return len(n.scopesOf(a)) > 0 }

// enforces reports whether there is an enforced scope.
func (n *naive) enforces() bool {
	return slices.ContainsFunc(n.scopes, func(s *v1alpha1.NodeScope) bool { return s.Spec.Mode == v1alpha1.Enforce })
}

// deniedWithoutNode reports whether scopes refuse everything to a credential of an account that has no node.
func (n *naive) deniedWithoutNode(a inventory.Name) bool {
	return slices.ContainsFunc(n.scopesOf(a), func(s *v1alpha1.NodeScopeSpec) bool { return s.TokensWithoutNode != v1alpha1.Allow })
}

// deniedUser is deniedWithoutNode for the name of a user.
func (n *naive) deniedUser(name string) bool {
	f := identityOf(name)
	return f.kind == attackpaths.ServiceAccount && n.deniedWithoutNode(inventory.Name{Namespace: f.namespace, Name: f.name})
}

// deniedOnNodes reports whether a scope lets nothing pass.
func (n *naive) deniedOnNodes(a inventory.Name) bool {
	return slices.ContainsFunc(n.scopesOf(a), func(s *v1alpha1.NodeScopeSpec) bool {
		rules := len(s.NamedAsNode) + len(s.SelectsNode) + len(s.PodsOnNode) + len(s.Anywhere)
		return !s.AsNode && rules == 0 && s.Otherwise != v1alpha1.Allow
	})
}

// The facts about an account in scopes. Nothing leads from useless to anything.
var useless = fact{kind: "a credential that is refused everything"}

// credentialOfAccount is a credential without a node.
func (n *naive) credentialOfAccount(a inventory.Name) fact {
	switch {
	case !n.isScoped(a):
		return accountOf(a)
	case n.deniedWithoutNode(a):
		return useless
	}
	return fact{"credential without a node", a.Namespace, a.Name}
}

// tokenOf is a token of an account with the name of a node.
func (n *naive) tokenOf(a inventory.Name, node string) fact {
	switch {
	case !n.isScoped(a):
		return accountOf(a)
	case n.deniedOnNodes(a):
		return useless
	}
	return fact{"token of " + node, a.Namespace, a.Name}
}

// tokensOf are the tokens of an account on each node.
func (n *naive) tokensOf(a inventory.Name) []fact {
	var all []fact
	for _, node := range n.nodes {
		all = append(all, n.tokenOf(a, node.Name))
	}
	return all
}

// startOf is the account as a start, with some token.
func (n *naive) startOf(a inventory.Name) fact {
	if !n.isScoped(a) {
		return accountOf(a)
	}
	return fact{"start", a.Namespace, a.Name}
}

// identifyScoped adds the identities of an account in scopes.
func (n *naive) identifyScoped(a inventory.Name, add func(naiveIdentity)) {
	if slices.Contains(n.scopedAccounts, a) {
		return
	}
	n.scopedAccounts = append(n.scopedAccounts, a)
	identity := naiveIdentity{user: isAccount + a.Namespace + ":" + a.Name, groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated",
	}}
	held := func(f fact) {
		n.step(0, false, accountOf(a), f)
		n.step(0, false, as(accountOf(a)), as(f))
		identity.fact = f
		add(identity)
	}
	if n.step(0, false, accountOf(a), n.startOf(a)); !n.deniedWithoutNode(a) {
		n.step(0, false, n.credentialOfAccount(a), n.startOf(a))
		held(n.credentialOfAccount(a))
	}
	if n.deniedOnNodes(a) {
		return
	}
	n.step(0, false, n.tokenOf(a, someNode), n.startOf(a))
	nodes := append(n.namesOfNodes(), someNode, chosenNode)
	for _, node := range n.nodes {
		n.step(0, false, n.tokenOf(a, node.Name), n.tokenOf(a, chosenNode))
		n.step(0, false, as(n.tokenOf(a, node.Name)), as(n.tokenOf(a, chosenNode)))
	}
	for _, p := range n.pods {
		if p.Node != "" && p.Namespace == a.Namespace && p.ServiceAccount == a.Name && !p.Mirror && len(p.Audiences) > 0 {
			n.step(0, true, n.tokenOf(a, p.Node), n.startOf(a))
		}
	}
	for _, node := range nodes {
		identity.token = &naiveToken{account: a, node: node, scopes: n.scopesOf(a)}
		held(n.tokenOf(a, node))
	}
}

// level says whether something is so.
type level = attackpaths.Certainty

// has says whether an identity has one of some rights by bindings.
func (n *naive) has(i naiveIdentity, asks []ask) (yes level) {
	if i.token != nil {
		return n.tokenHas(i, asks)
	}
	n.static(i.user, i.groups, func(r naiveRole, scope string) {
		if !(r.everything && scope == "") && r.grants(asks, scope, i.node) {
			yes = attackpaths.Certain
		}
	})
	return yes
}

// tokenHas puts each request to RBAC and to the scopes.
func (n *naive) tokenHas(i naiveIdentity, asks []ask) (yes level) {
	for _, a := range asks {
		for _, q := range n.requests([]ask{a}) {
			if got := n.tokenMay(i, q, a.content); got > yes && !(a.limited && n.forEveryName(i, a, q)) {
				yes = got
			}
		}
	}
	return yes
}

// forEveryName reports whether a request is allowed for other names too.
func (n *naive) forEveryName(i naiveIdentity, a ask, q request) bool {
	if q.name = anyOtherName; a.nameless(q.verb) {
		q.name = ""
	}
	return n.tokenMay(i, q, a.content) == attackpaths.Certain
}

// tokenMay says whether a request of a token is allowed. Content is true if it matters which name an object
// has that is created.
func (n *naive) tokenMay(i naiveIdentity, q request, content bool) level {
	created := q.verb == "create" && q.sub == ""
	switch {
	case !n.allows(naiveIdentity{user: i.user, groups: i.groups}, q):
		return attackpaths.No
	case i.token.passes(n, q, naiveWay{}):
		return attackpaths.Certain
	case created && slices.ContainsFunc(
		[]naiveWay{{named: true}, {namedLikePod: true}, {named: true, namedLikePod: true}},
		func(way naiveWay) bool { return i.token.passes(n, q, way) },
	):
		sensitive := content || q.group == "" && slices.Contains([]string{"secrets", "configmaps", "serviceaccounts"}, q.resource)
		if sensitive && i.token.node != chosenNode {
			return attackpaths.Possible
		}
		return attackpaths.Certain
	case slices.Contains([]string{"list", "watch", deletingAll}, q.verb) && i.token.passes(n, q, naiveWay{selects: true}):
		return attackpaths.Possible
	case i.token.passes(n, q, naiveWay{selects: true, named: created, mirrors: true, ofNodes: content}):
		return attackpaths.Possible
	}
	return attackpaths.No
}

// naiveWay is what a request is beside its attributes.
type naiveWay struct {
	// named: the object that is created has the name of the node. namedLikePod: it has that of a pod on it.
	named, namedLikePod bool
	// mirrors: the node has made a mirror pod with the name of the object.
	mirrors bool
	// selects: the field selector requires the node's name in spec.nodeName.
	selects bool
	// asNode counts what the node itself may write: NodeRestriction limits the content.
	asNode bool
	// ofNodes counts what the Node authorizer has rules for.
	ofNodes bool
}

// passes reports whether all scopes let a request pass.
func (t *naiveToken) passes(n *naive, q request, way naiveWay) bool {
	return !slices.ContainsFunc(t.scopes, func(s *v1alpha1.NodeScopeSpec) bool { return !t.passesScope(n, s, q, way) })
}

func (t *naiveToken) passesScope(n *naive, s *v1alpha1.NodeScopeSpec, q request, way naiveWay) bool {
	named, selected := false, q.name
	q = q.seen()
	is := func(name string) bool { return name != "" && (name == t.node || t.node == chosenNode) }
	for _, r := range s.NamedAsNode {
		if covers(q, r.APIGroups, r.Resources, r.Verbs, nil, r.Namespaces) {
			if named = true; is(q.name) || way.named {
				return true
			}
		}
	}
	for _, r := range s.SelectsNode {
		if covers(q, r.APIGroups, r.Resources, r.Verbs, nil, r.Namespaces) {
			named = true
			if r.Field == "metadata.name" && is(selected) || r.Field == "spec.nodeName" && way.selects {
				return true
			}
		}
	}
	for _, r := range s.PodsOnNode {
		groups, resources := r.APIGroups, slices.Clone(r.Resources)
		if len(groups) == 0 {
			groups = []string{""}
		}
		isPods := q.group == "" && q.resource == "pods"
		if slices.Contains(resources, "pods/*") && isPods {
			resources = []string{"*"}
		}
		if covers(q, groups, resources, r.Verbs, nil, r.Namespaces) {
			if named = true; t.passesPods(n, q, way, isPods) {
				return true
			}
		}
	}
	for _, r := range s.Anywhere {
		if covers(q, r.APIGroups, r.Resources, r.Verbs, r.ResourceNames, r.Namespaces) {
			return true
		}
	}
	if s.AsNode {
		allowed, about := t.asNode(n, q)
		if allowed && (way.asNode || q.verb != "create") || way.ofNodes && about && t.node != someNode {
			return true
		}
		named = named || about
	}
	return !named && s.Otherwise == v1alpha1.Allow
}

// passesPods reports whether a request is about a pod on the node, or about an object that is named like one.
func (t *naiveToken) passesPods(n *naive, q request, way naiveWay, isPods bool) bool {
	created := q.verb == "create" && q.sub == ""
	if !isPods && way.mirrors && q.ns != "" && (created || q.name != "") {
		return true
	}
	return slices.ContainsFunc(n.pods, func(p *inventory.Pod) bool {
		name := p.Name.Name == q.name
		if created {
			name = !isPods && way.namedLikePod && (!way.named || p.Name.Name == t.node)
		}
		return p.Node == t.node && p.Namespace == q.ns && name
	})
}

// asNode asks the Node authorizer, and says whether it has a rule for the resource and the verb. Of what it
// allows, only what leads to something counts.
func (t *naiveToken) asNode(n *naive, q request) (allowed, about bool) {
	answer := nodeauthz.New(n.c.Relations, n.c.Features).DecideAs(t.node, &access.Request{
		ResourceRequest: true, Verb: q.verb, Group: q.group, Resource: q.resource, Subresource: q.sub, Namespace: q.ns, Name: q.name,
	})
	switch answer.Code {
	case nodeauthz.NoRuleForResource, nodeauthz.SubresourceNotAllowed, nodeauthz.VerbNotAllowed, nodeauthz.FeatureDisabled:
		about = answer.Decision == verdict.Allow
	default:
		about = true
	}
	counts := q.group == "" && (q.resource == "secrets" && q.sub == "" || q.resource == "serviceaccounts" && q.sub == "token") ||
		q.group == certificatesGroup && q.resource == "certificatesigningrequests" && q.sub == ""
	return answer.Decision == verdict.Allow && counts && t.node != someNode, about
}

func (n *naive) isNode(name string) bool {
	return slices.ContainsFunc(n.nodes, func(o inventory.Node) bool { return o.Name == name })
}

// covers reports whether a rule of a scope is about a request.
func covers(q request, groups, resources, verbs, names, namespaces []string) bool {
	resource := q.resource
	if q.sub != "" {
		resource += "/" + q.sub
	}
	return oneOf(groups, q.group) && oneOf(verbs, q.verb) &&
		(oneOf(resources, resource) || q.sub != "" && slices.Contains(resources, "*/"+q.sub)) &&
		(len(names) == 0 || slices.Contains(names, q.name)) && (len(namespaces) == 0 || slices.Contains(namespaces, q.ns))
}

func oneOf(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// ownsAll reports whether a token may do everything.
func (n *naive) ownsAll(i naiveIdentity) bool {
	everything := false
	n.static(i.user, i.groups, func(r naiveRole, scope string) { everything = everything || r.everything && scope == "" })
	return everything && !slices.ContainsFunc(i.token.scopes, func(s *v1alpha1.NodeScopeSpec) bool {
		all := func(r v1alpha1.AnywhereRule) bool {
			return slices.Contains(r.APIGroups, "*") && slices.Contains(r.Resources, "*") && slices.Contains(r.Verbs, "*") &&
				len(r.ResourceNames)+len(r.Namespaces) == 0
		}
		limits := s.AsNode || len(s.NamedAsNode)+len(s.SelectsNode)+len(s.PodsOnNode) > 0
		return (limits || s.Otherwise != v1alpha1.Allow) && !slices.ContainsFunc(s.Anywhere, all)
	})
}
