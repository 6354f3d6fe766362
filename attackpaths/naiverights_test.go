package attackpaths_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// grants reports whether a rule that holds in a scope allows one of the requests.
func (a ask) grants(rule *rbacv1.PolicyRule, scope string, node bool) bool {
	if scope != "" && scope != a.ns {
		return false
	}
	if a.otherAudience {
		if len(rule.Resources) == 0 || !slices.Contains(rule.Verbs, a.verbs[0]) {
			return false
		}
		a.resource = rule.Resources[0]
	}
	for _, verb := range a.verbs {
		if node && refusedToNodes(verb, a.resource, a.sub) {
			continue
		}
		name := a.name
		if a.limited && len(rule.ResourceNames) == 0 {
			continue
		}
		switch {
		case len(rule.ResourceNames) == 0:
		case a.nameless(verb) && slices.Contains(rule.ResourceNames, ""):
			name = "" // the rule is for requests without a name
		case a.unlimited || verb == deletingAll:
			continue
		case a.anyName:
			i := slices.IndexFunc(rule.ResourceNames, func(name string) bool { return name != "" })
			if i < 0 {
				continue // no object has that name
			}
			name = rule.ResourceNames[i]
		}
		if rbac.RuleAllows(rule, &access.Request{
			Verb: verb, ResourceRequest: true, Group: a.group, Resource: a.resource, Subresource: a.sub, Namespace: a.ns, Name: name,
		}) {
			return true
		}
	}
	return false
}

// guarded reports whether a webhook or a policy may refuse a write.
func (n *naive) guarded(operation admissionv1.OperationType, group, resource, sub, ns string) bool {
	w := inventory.Write{Operation: operation, Group: group, Resource: resource, Subresource: sub}
	if operation == admissionv1.Create && sub == "" && n.full(ns, group, resource) {
		return true
	}
	return n.asksWebhook(operation, group, resource, sub, ns) || n.policies.Write(w, ns)
}

// full reports whether a quota keeps new objects out of a namespace.
func (n *naive) full(ns, group, resource string) bool {
	return n.c.Inventory.FullQuota(ns, group, resource) != ""
}

// asksWebhook reports whether a webhook may refuse a write.
func (n *naive) asksWebhook(operation admissionv1.OperationType, group, resource, sub, ns string) bool {
	with := map[string]string{"kubernetes.io/metadata.name": ns}
	maps.Copy(with, n.namespaces[ns])
	w := inventory.Write{
		Operation: operation, Group: group, Resource: resource, Subresource: sub,
		Namespaced: ns != "" && resource != "namespaces",
	}
	return slices.ContainsFunc(n.c.Inventory.Admission(), func(a inventory.Admission) bool {
		if a.Policy != nil && n.c.Policies != nil {
			return false
		}
		excludes := func(s labels.Selector) bool { return !s.Matches(labels.Set(with)) }
		if resource == "namespaces" && slices.ContainsFunc(a.Namespaces, excludes) {
			return false // a namespace is selected by its own labels
		}
		return a.Covers(w, with)
	})
}

// nameless reports whether a request may be made without a name in it.
func (a ask) nameless(verb string) bool {
	switch verb {
	case "create":
		return !a.hasName && (a.sub == "" || a.sub == "nodeclient")
	case "list", "watch", "deletecollection":
		return true
	}
	return false
}

// refusedToNodes is what the admission plugin NodeRestriction refuses.
func refusedToNodes(verb, resource, sub string) bool {
	create, change := verb == "create", verb == "update" || verb == "patch"
	switch resource + "/" + sub {
	case "pods/":
		return create || change
	case "nodes/", "nodes/status":
		return change // of other nodes, and of labels that no node may set on itself
	case "pods/ephemeralcontainers":
		return change
	case "persistentvolumeclaims/", "serviceaccounts/token", "certificatesigningrequests/":
		return create
	}
	return false
}

// creates reports whether the request makes an object or a token.
func (a ask) creates() bool {
	return slices.Contains(a.verbs, "create") && len(a.verbs) == 1 && (a.sub == "" || a.sub == "token")
}

// grants reports whether a role that is held in a scope gives a right.
func (r naiveRole) grants(asks []ask, scope string, node bool) bool {
	for _, a := range asks {
		if a.notEverything && r.everything || r.ending[a.ns] && a.creates() {
			continue
		}
		for i := range r.rules {
			if a.grants(&r.rules[i], scope, node) {
				return true
			}
		}
	}
	return false
}

// names reports whether a binding applies to a user.
func names(b rbac.BoundRole, user string, groups []string) bool {
	return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case "User":
			return user != "" && s.Name == user
		case "ServiceAccount":
			return s.Namespace != "" && user == isAccount+s.Namespace+":"+s.Name
		case "Group":
			return slices.Contains(groups, s.Name)
		}
		return false
	})
}

// roleOf finds the role of a binding.
func (n *naive) roleOf(b rbac.BoundRole) (naiveRole, bool) {
	for _, r := range n.roles {
		inScope := r.ref.Kind == "ClusterRole" || r.ref.Kind == "Role" && b.Binding.Namespace == r.ref.Namespace
		if r.ref.Kind == b.Role.Kind && r.ref.Name == b.Role.Name && inScope {
			return r, true
		}
	}
	return naiveRole{}, false
}

// static calls do for each role that bindings give to a user, and where.
func (n *naive) static(user string, groups []string, do func(role naiveRole, scope string)) {
	for _, b := range n.bindings {
		if n.lost != nil && n.lost(b) {
			continue
		}
		if role, ok := n.roleOf(b); ok && names(b, user, groups) {
			do(role, b.Binding.Namespace)
		}
	}
}

func (n *naive) anonymous(do func(role naiveRole, scope string)) {
	n.static("system:anonymous", []string{"system:unauthenticated"}, do)
}

// senders are those who make anonymous requests: every identity, and pods without a token.
func (n *naive) senders() []fact {
	var all []fact
	for _, i := range n.identities {
		all = append(all, as(i.fact))
	}
	for _, p := range n.pods {
		if p.Mirror || p.ServiceAccount == "" || len(p.Audiences) == 0 || n.deniedOnNodes(accountOfPod(p)) {
			all = append(all, podHolding(p))
		}
	}
	for a := range n.accounts {
		if n.isScoped(a) && n.deniedOnNodes(a) {
			all = append(all, n.startOf(a))
		}
	}
	return all
}

// eachOwned calls do for each role that can be owned, in each scope.
func (n *naive) eachOwned(do func(role naiveRole, scope string)) {
	for _, r := range n.roles {
		if r.ref.Kind != "Role" {
			do(r, "")
		}
		for ns := range n.namespaces {
			if r.ref.Kind != "Role" || r.ref.Namespace == ns {
				do(r, ns)
			}
		}
	}
}

// requester is what makes a request of an identity: to impersonate, it needs a credential.
func (i naiveIdentity) requester(asks []ask) fact {
	if strings.HasPrefix(asks[0].verbs[0], "impersonate") {
		return i.fact
	}
	return as(i.fact)
}

// right is the fact that the attacker can make one of the requests, as any identity.
func (n *naive) right(asks ...ask) fact {
	key := fmt.Sprintf("%q", fmt.Sprint(asks))
	if f, ok := n.rights[key]; ok {
		return f
	}
	f := fact{"right", "", key}
	n.rights[key] = f
	for _, i := range n.identities {
		if yes := n.has(i, asks); yes > attackpaths.No {
			n.step(0, yes == attackpaths.Possible, f, i.requester(asks))
		}
	}
	for _, sender := range n.senders() {
		n.anonymous(func(r naiveRole, scope string) {
			if !(r.everything && scope == "") && r.grants(asks, scope, false) {
				n.step(0, true, f, sender)
			}
		})
	}
	n.stepsOfOwned(f, asks)
	n.rightOfOthers(f, asks)
	return f
}

// rightOfNode is the fact that a node can make a request with its own credential.
func (n *naive) rightOfNode(node string, a ask) fact {
	f := fact{"right of node " + node, "", fmt.Sprint(a)}
	for _, i := range n.identities {
		if i.fact == cred(node) && n.has(i, []ask{a}) > 0 {
			n.step(0, false, f, as(i.fact))
		}
	}
	n.step(0, false, f, as(cred(node)), n.ownedRight([]ask{a}))
	return f
}

// toFree is what a role has to be bound to so that it counts.
func (n *naive) toFree(others ...fact) []fact {
	if n.enforces() {
		others = append(others, free)
	}
	return others
}

// stepsOfOwned leads to a right from the roles that the attacker owns.
func (n *naive) stepsOfOwned(f fact, asks []ask) {
	n.eachOwned(func(r naiveRole, scope string) {
		switch {
		case r.everything && scope == "":
		case r.grants(asks, scope, true):
			n.step(0, false, f, n.toFree(owned(r.ref, scope))...)
		case r.grants(asks, scope, false):
			n.step(0, false, f, n.toFree(owned(r.ref, scope), notNode)...)
		}
	})
}

// ownedRight is the fact that an owned role gives one of the rights, for use with another.
func (n *naive) ownedRight(asks []ask) fact {
	key := fmt.Sprintf("%q", fmt.Sprint(asks))
	f := fact{"owned right", "", key}
	if _, ok := n.rights["owned "+key]; ok {
		return f
	}
	n.rights["owned "+key] = f
	n.stepsOfOwned(f, asks)
	return f
}

// together is the fact that one identity can make a request of each of several kinds.
func (n *naive) together(parts ...[]ask) fact {
	key := fmt.Sprintf("%q", fmt.Sprint(parts))
	f := fact{"together", "", key}
	if _, ok := n.rights["together "+key]; ok {
		return f
	}
	n.rights["together "+key] = f
	var given []fact
	for _, part := range parts {
		given = append(given, n.ownedRight(part))
	}
	n.step(0, false, f, given...)
	for _, i := range n.identities {
		from, possible := []fact{i.requester(parts[0])}, false
		for k, part := range parts {
			switch has := n.has(i, part); {
			case has > 0:
				possible = possible || has == attackpaths.Possible
			default:
				from = append(from, given[k])
			}
		}
		if len(from) <= len(parts) {
			n.step(0, possible || i.token != nil && (len(from) > 1 || slices.ContainsFunc(parts, isByName)), f, from...)
		}
	}
	n.togetherOfOthers(f, parts)
	return f
}

// without is the fact that one identity can make a request of each of several kinds by its own rights after some bindings are lost.
func (n *naive) without(lost func(rbac.BoundRole) bool, parts ...[]ask) fact {
	f := fact{"together without", fmt.Sprint(len(n.facts)), fmt.Sprint(parts)}
	n.lost = lost
	defer func() { n.lost = nil }()
	for _, i := range n.identities {
		has, possible := true, i.token != nil && slices.ContainsFunc(parts, isByName)
		for _, part := range parts {
			level := n.has(i, part)
			has, possible = has && level > attackpaths.No, possible || level == attackpaths.Possible
		}
		if has {
			n.step(0, possible, f, i.requester(parts[0]))
		}
	}
	n.togetherOfOthers(f, parts)
	return f
}

// isByName reports whether a request creates an object by its name.
func isByName(asks []ask) bool { return asks[0].hasName }
