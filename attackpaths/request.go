package attackpaths

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// table are all kinds of requests, and never changes: the rights of requestKinds, and with each mode of constrained
// impersonation a kind for every request, and one for each verb with which rights can be used then.
var table = listKinds()

func listKinds() []requestKind {
	all := slices.Clone(requestKinds[:])
	for m := associatedNode; m < modeCount; m++ {
		all = append(all, requestKind{verbs: standardVerbs[:1], on: m, whole: true}) // one verb stands for all
		for r := range rightCount {
			k := requestKinds[r]
			if k.beside || k.impersonates() {
				continue
			}
			k.on, k.of, k.refused = m, r, false
			for i := range k.verbs {
				k.verbs = requestKinds[r].verbs[i : i+1]
				all = append(all, k)
			}
		}
	}
	return all
}

// limit is the part of a kind of request that a rule covers: a namespace, or all if it is empty, and a name.
type limit struct{ namespace, name string }

func (l limit) compare(o limit) int {
	return cmp.Or(cmp.Compare(l.namespace, o.namespace), cmp.Compare(l.name, o.name))
}

// unnamed is the name of requests that have none, where a rule covers only these. No object has
// this name.
const unnamed = "/"

// verbOn is the verb that is allowed on the target of a request while a mode is used.
func (m mode) verbOn(verb string) string {
	if m == 0 {
		return verb
	}
	return "impersonate-on:" + m.String() + ":" + verb
}

// coversWhole reports whether a rule is for every request on objects while a mode is used.
func coversWhole(rule *rbacv1.PolicyRule, m mode) bool {
	if grantsEverything(rule) {
		return true
	}
	for _, verb := range standardVerbs {
		if !slices.Contains(rule.Verbs, m.verbOn(verb)) {
			return false
		}
	}
	return len(rule.ResourceNames) == 0 && slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")
}

// and is what two limits have in common.
func (l limit) and(o limit) (both limit, ok bool) {
	both = l
	if l.namespace == "" {
		both.namespace = o.namespace
	}
	if l.name == "" {
		both.name = o.name
	}
	return both, l.covers(both.namespace, both.name) && o.covers(both.namespace, both.name)
}

// covers reports whether a limit contains the request for an object.
func (l limit) covers(namespace, name string) bool {
	return (l.namespace == "" || l.namespace == namespace) && (l.name == "" || l.name == name)
}

// rightName is the name that a right has whose requests a limit allows.
func (l limit) rightName() string {
	if l.name == unnamed {
		return ""
	}
	return l.name
}

// contains is the right that another right contains. To read: the API server answers a write or a
// deletion with the object, and a dry run too. Admission is asked about these requests. An update of
// a secret has to carry its content, and one of the status of a request its certificate. To create a mutating admission policy or its
// binding: whoever may change one that exists does as much with it.
func (r right) contains() (right, bool) {
	switch r {
	case patchSecrets, deleteSecrets:
		return readSecrets, true
	case writeSigningRequests, deleteSigningRequests, getApprovals, getSigningStatus, patchSigningStatus:
		return readSigningRequests, true
	case changeMutatingPolicies:
		return createMutatingPolicies, true
	case changeMutatingPolicyBindings:
		return createMutatingPolicyBindings, true
	}
	return 0, false
}

// alike lists the rights that give what a right gives: it, or the one that it contains, and each right that contains this.
func (r right) alike() []right {
	if contained, ok := r.contains(); ok {
		r = contained
	}
	all := []right{r}
	for other := range rightCount {
		if contained, ok := other.contains(); ok && contained == r {
			all = append(all, other)
		}
	}
	return all
}

// kindsFor is the table as an API server of the cluster asks for rights.
func kindsFor(c *Cluster) []requestKind {
	kinds := slices.Clone(table)
	if c.Features.Minor() < 35 { // a websocket is opened by a get
		kinds[execPods].verbs, kinds[attachPods].verbs = []string{"create", "get"}, []string{"create", "get"}
	}
	return kinds
}

// verbIn is the first verb by which rules grant a right for a name, or for all.
func (k *requestKind) verbIn(rules []rbacv1.PolicyRule, name string) string {
	for _, verb := range k.verbs {
		by := *k
		by.verbs = []string{verb}
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(by.namesBy(&rule), name) }) {
			return verb
		}
	}
	return k.verbs[0]
}

// usedRight follows a right back to the one that a role grants, or that scopes let pass, and finds
// its verb.
func (s *solver) usedRight(v vertex) (r right, verb string) {
	for {
		how, k := s.via[v], s.keys[v]
		r = right(k.variant)
		if how.from == none {
			return r, requestKinds[r].verbs[0]
		}
		switch from := s.keys[how.from]; from.kind {
		case isRight:
			v = how.from
		case isRole:
			return r, s.kinds[r].verbIn(s.roles[from.role].Rules, k.name)
		case isLimited:
			if kind := s.kinds[from.variant]; kind.of == r {
				return r, kind.verbs[0]
			}
			return r, requestKinds[r].verbs[0] // by a request that applies the object
		default:
			if passed, ok := s.passedBy[passing{how.from, v}]; ok {
				return r, passed.verb
			}
			return r, requestKinds[r].verbs[0]
		}
	}
}

// partOf is the vertex of a right that a step needs together with other things; none if it does not need it.
func (s *solver) partOf(how via, r right) vertex {
	for _, v := range s.parts(how) {
		if k := s.keys[v]; k.kind == isRight && right(k.variant) == r {
			return v
		}
	}
	return none
}

// verbOfPart is the verb of such a right.
func (s *solver) verbOfPart(how via, r right) string {
	if v := s.partOf(how, r); v != none {
		_, verb := s.usedRight(v)
		return verb
	}
	return requestKinds[r].verbs[0]
}
