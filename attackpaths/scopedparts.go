package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const nodeUserPrefix = nodeidentity.UserPrefix

// what is what a part is about: a right, a request of a custom technique, or a right to impersonate for
// some requests.
type what struct {
	right  right
	custom int32 // -1 for none
	on     mode
}

// part is what a binding grants and all scopes let pass.
type part struct {
	what
	pass
	verb    string
	binding int32
}

// place is the node of a token. A chosen node need not exist; it has any name if it has none.
type place struct {
	node   string
	chosen bool
}

// partsOf finds what RBAC grants to an account and its scopes let pass. Subjects of bindings must have
// been added.
func (b *builder) partsOf(a *scopedAccount) {
	scopes := a.rules
	if a.rules = nil; scopes == nil {
		return
	}
	a.subjects = b.subjectsOfIdentity(key{kind: isServiceAccount, namespace: a.namespace, name: a.name})
	passing, seen := map[asked][]pass{}, map[part]bool{}
	for _, s := range a.subjects {
		for _, e := range b.out[s] {
			k := b.keys[e.to]
			if h := (heldRole{k.role, e.arg, k.namespace}); k.kind == isRole && !slices.Contains(a.held, h) {
				a.held = append(a.held, h)
			}
			b.eachGrant(k, func(w what, q asked, granted limit) {
				if _, ok := passing[q]; !ok {
					passing[q] = []pass{{}}
					for i := range scopes {
						passing[q] = combinePasses(passing[q], b.passes(&scopes[i], q))
					}
				}
				in := pass{limit: limit{namespace: k.namespace, name: granted.name}}
				for _, p := range combinePasses([]pass{in}, passing[q]) {
					p.request = granted.request
					id := part{what: w, pass: p}
					if id.rules = ""; !seen[id] {
						seen[id] = true
						a.add(part{what: w, pass: p, verb: q.verb, binding: e.arg})
					}
				}
			})
		}
	}
}

// add puts a part where it belongs. Whoever creates an object chooses its name, and whoever selects objects the
// selector, so that each token may do so.
func (a *scopedAccount) add(p part) {
	ofNode := p.needs &^ needsSelector
	if ofNode&^(needsNewName|needsPodName|needsNewPodName) == 0 { // any node can create a mirror pod
		a.others = append(a.others, p)
	}
	if ofNode != 0 && (ofNode != needsNewName || p.namesNewObject()) {
		a.perNode = append(a.perNode, p)
	}
}

// eachGrant calls do for each kind of request that a role grants, verb by verb, with the name of the
// object or none.
func (b *builder) eachGrant(role key, do func(w what, q asked, granted limit)) {
	rules := b.roles[role.role].Rules
	each := func(w what, q asked, m mode, of request) {
		if role.namespace != "" && !q.kind.namespaced {
			return
		}
		for i := range rules {
			for _, name := range coveredNames(&rules[i], q.kind, q.verb, m) {
				do(w, q, limit{request: of, name: name})
			}
		}
	}
	for r := range rightCount {
		if r.isPart() && !b.isNamed(r.whole()) {
			continue
		}
		for _, verb := range r.verbs(b.cluster.Features.Minor() < 35) {
			q := asked{kind: &requestKinds[r], verb: verb}
			if r == impersonateAssociatedNode {
				q.mode = associatedNode // the check has no node
			}
			each(what{right: r, custom: -1}, q, 0, 0)
		}
	}
	for m := range modeCount {
		if !b.modes[m] {
			continue
		}
		w := what{on: m, custom: -1}
		if role.namespace == "" && slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return coversWhole(&r, m) }) {
			do(w, asked{mode: m}, limit{request: whole})
		}
		for q := whole + 1; int(q) < len(requests); q++ {
			each(w, asked{kind: &requestKinds[requests[q].right], verb: requests[q].verb, mode: m}, m, q)
		}
	}
	b.eachCustomGrant(role, do)
}

// eachCustomGrant is eachGrant for custom techniques. The name is that of the only object, or none for
// the object that the request names.
func (b *builder) eachCustomGrant(role key, do func(w what, q asked, granted limit)) {
	for i := range b.requests {
		r := &b.requests[i]
		if !r.holdsIn(role.namespace) {
			continue
		}
		kind := b.customKinds[i]
		for _, verb := range r.Verbs {
			single := *r
			single.Verbs = []string{verb}
			for j := range b.roles[role.role].Rules {
				for _, name := range single.grantedBy(&b.roles[role.role].Rules[j]) {
					do(what{custom: int32(i)}, asked{kind: kind, verb: verb, custom: true}, limit{name: name})
				}
			}
		}
	}
}

// instances are what a part is with the token of a node: limits, and what else decides.
func (b *builder) instances(p *part, at place, do func(l limit, dependsOn string)) {
	l, dependsOn := p.limit, ""
	anyName := at.chosen && at.node == ""
	if p.needs&needsNewName != 0 && !anyName && p.namesNewObject() {
		dependsOn = dependsOnNodeName
	}
	if p.needs&needsSelector != 0 {
		dependsOn = allOf(dependsOn, dependsOnSelector)
	}
	if p.needs&needsName != 0 && !anyName {
		named, ok := l.and(limit{request: l.request, name: at.node})
		if !ok {
			return
		}
		l = named
	}
	const ofPods = needsPod | needsPodName | needsNewPodName
	if p.needs&ofPods != 0 {
		b.instancesOfPods(p, l, at, dependsOn, do)
	} else {
		do(l, dependsOn)
	}
}

// instancesOfPods are what a part is that pods on the node limit. An object that is named like none of them is
// possible: a node can create a mirror pod with a name that no pod has.
func (b *builder) instancesOfPods(p *part, l limit, at place, dependsOn string, do func(l limit, dependsOn string)) {
	possible, onPods := allOf(dependsOn, dependsOnPodName), dependsOn
	creates := p.needs&needsNewPodName != 0
	if creates && p.namesNewObject() {
		onPods = possible
	}
	for _, i := range b.podsAt(at) {
		pod := b.pods[i]
		of := limit{request: l.request, namespace: pod.Namespace, name: pod.Name.Name}
		if p.needs&needsNewName != 0 && of.name != at.node {
			continue // the new object needs both names
		}
		if creates {
			of.name = l.name
		}
		if l.covers(of.namespace, of.name) {
			do(of, onPods)
		}
	}
	if p.needs&needsPod == 0 {
		do(l, possible)
	}
}

// podsAt are the pods on the node of a token; none are known of one that need not exist, or that is not known.
func (b *builder) podsAt(at place) []int32 {
	if at.chosen || at.node == "" {
		return nil
	}
	return b.podsOn[at.node]
}

// namesNewObject reports whether it matters which name an object has that is created.
func (p *part) namesNewObject() bool {
	if p.custom >= 0 {
		return true
	}
	switch p.right.whole() {
	case createSecrets, createConfigMaps, createAccounts:
		return p.on == 0
	}
	return false
}

// podsOnNode are the pods of a node that a right of its tokens is about.
func (b *builder) podsOnNode(k key) []int32 {
	var all []int32
	of := limit{namespace: k.namespace, name: k.name}
	for _, i := range b.podsOn[b.keys[k.of].name[len(nodeUserPrefix):]] {
		if p := b.pods[i]; of.covers(p.Namespace, p.Name.Name) {
			all = append(all, i)
		}
	}
	return all
}
