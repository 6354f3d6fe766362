package attackpaths

import "slices"

// grant is how a binding gives a right that a step needs.
type grant struct {
	binding int32
	// subjects are the vertices of the subjects through which the binding applies; empty if that is
	// not known.
	subjects []vertex
	// role is the vertex of the role, and right what it leads to; none if that is not known.
	role, right vertex
	// before is the step that gives the right, if no binding does.
	before vertex
}

// grantOf follows the derivation of a vertex back to the binding or step that gives it; false if
// that is a holding.
func (s *solver) grantOf(v vertex) (grant, bool) {
	after := none
	for {
		if _, isHolding := s.keys[v].holding(); isHolding {
			return grant{}, false
		}
		how := s.via[v]
		switch {
		case how.edge.row != 0:
			return grant{binding: -1, before: v}, true
		case how.join >= 0:
			if how.edge.arg >= 0 {
				return s.grantTo(how, how.edge.arg)
			}
			for _, from := range s.joins[how.join].from {
				if g, ok := s.grantOf(from); ok {
					return g, true
				}
			}
			return grant{}, false
		case how.from == none:
			return grant{}, false
		case how.edge.arg >= 0:
			g := grant{binding: how.edge.arg, role: none, right: none, before: none}
			if s.keys[v].kind == isRole {
				g.role, g.right = v, after
			}
			g.subjects = s.subjectsIn(s.holderOf(how.from), how.edge.arg)
			return g, true
		}
		after, v = v, how.from
	}
}

// holderOf is the identity that a subject is of, or that is impersonated.
func (s *solver) holderOf(subject vertex) vertex {
	switch k := s.keys[subject]; {
	case k.kind == isLimited:
		return vertex(k.role)
	case s.isScopedAccount(k):
		return subject
	case s.via[subject].from != none:
		return s.via[subject].from
	}
	return subject
}

// grantBy finds the grant of a step by a binding.
func (s *solver) grantBy(how via, binding int32) (grant, bool) {
	for _, v := range s.parts(how) {
		if g, ok := s.grantOf(v); ok && g.before == none && g.binding == binding {
			return g, true
		}
	}
	return s.grantTo(how, binding)
}

// grantTo is the grant of rights that count together, to an identity that is a part of the step.
func (s *solver) grantTo(how via, binding int32) (grant, bool) {
	g := grant{binding: binding, role: none, right: none, before: none}
	for _, v := range s.parts(how) {
		if s.keys[v].kind == isLimited {
			v = vertex(s.keys[v].role)
		}
		g.subjects = append(g.subjects, s.subjectsIn(v, binding)...)
	}
	return g, true
}

// subjectsIn are the subjects of an identity that a binding names.
func (s *solver) subjectsIn(identity vertex, binding int32) []vertex {
	k := s.keys[identity]
	if s.isScopedAccount(k) {
		return s.scopedSubjects(k, binding)
	}
	if k.kind == isAssociated {
		identity = s.index[key{kind: isServiceAccount, namespace: k.namespace, name: k.name}]
	}
	var found []vertex
	for _, e := range s.out[identity] {
		byBinding := func(e edge) bool { return e.arg == binding }
		if s.keys[e.to].kind == isSubject && e.row == 0 && slices.ContainsFunc(s.out[e.to], byBinding) {
			found = append(found, e.to)
		}
	}
	return found
}

// subjectPlaces are the places of subjects in a binding. All are meant if none is known.
func (s *solver) subjectPlaces(g grant) []int {
	names := map[string]bool{}
	for _, v := range g.subjects {
		names[s.keys[v].name] = true
	}
	var places []int
	for i, subject := range s.bindings[g.binding].Subjects {
		user, group, ok := principal(subject)
		if len(names) == 0 || ok && names[subjectKey(user, group, anybody).name] {
			places = append(places, i)
		}
	}
	return places
}
