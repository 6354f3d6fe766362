package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// reads is the right to read that another right contains: the API server answers a write or a
// deletion with the object, and a dry run too. Admission is asked about these requests. An update of
// a secret has to carry its content, and one of the status of a request its certificate.
func (r right) reads() (right, bool) {
	switch r {
	case patchSecrets, deleteSecrets:
		return readSecrets, true
	case writeSigningRequests, deleteSigningRequests, getApprovals, getSigningStatus, patchSigningStatus:
		return readSigningRequests, true
	}
	return 0, false
}

// alike lists the rights that give what a right gives: to read, each right that contains it.
func (r right) alike() []right {
	if read, ok := r.reads(); ok {
		r = read
	}
	all := []right{r}
	for other := range rightCount {
		if read, ok := other.reads(); ok && read == r {
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
			if passed, ok := s.passedBy[passing{from: how.from, to: v}]; ok {
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
