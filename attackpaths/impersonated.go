package attackpaths

import "slices"

// The API server impersonates once per request, and checks the right to do so of the requester only.
// So an identity of which the attacker holds no credential, and as which it can only act by
// impersonation, is another vertex than the identity itself: its roles give it no right to impersonate,
// and as a service account it has no token. With a credential the attacker holds both. A token or
// certificate that the impersonated identity gets is a credential again.
//
// An identity that has no right to impersonate, and no use of a token's node, is the same for both.
//
// Own roles count as before: there is always an identity of which a credential is held, or an
// anonymous request, and the attacker can bind them to it.
//
// Source: k8s.io/apiserver/pkg/endpoints/filters/impersonation.

// asImpersonated is the vertex of an identity, or of several, as which the attacker acts by
// impersonation; none if it may do nothing.
func (b *builder) asImpersonated(k key) vertex {
	if k.kind == isServiceAccount && b.denied(userOfAccount(k.namespace, k.name)) {
		return none
	}
	if k.variant = 0; b.needsCredential(k) {
		k.variant = impersonated
	}
	return b.vertex(k)
}

// needsCredential reports whether an identity, or one of several, can do more with a credential than
// who impersonates it.
func (b *builder) needsCredential(k key) bool {
	return k.kind == isServiceAccount && b.associates() || k.kind == isFact && k.name != userWithGroups ||
		slices.ContainsFunc(b.subjectsOfIdentity(k), func(s vertex) bool { return b.impersonatedSubject(s) != s })
}

func (b *builder) impersonatedFact(name, namespace string) vertex {
	return b.asImpersonated(key{kind: isFact, namespace: namespace, name: name})
}

// memberOf is the vertex of an identity that a fact stands for.
func (b *builder) memberOf(fact, member key) vertex {
	if fact.variant == impersonated {
		return b.asImpersonated(member)
	}
	if member.kind == isServiceAccount {
		return b.accountVertex(member.namespace, member.name)
	}
	return b.vertex(member)
}

// actsAs lets the holder of an identity's credential do what can be done as the identity.
func (b *builder) actsAs(v vertex, k key) {
	if k.variant != impersonated {
		return
	}
	k.variant = 0
	b.implies(b.vertex(k), v)
	b.alsoImpersonated[b.vertex(k)] = true
}

// impersonatedSubject is a subject as far as its roles do not give rights to impersonate.
func (b *builder) impersonatedSubject(s vertex) vertex {
	if v, ok := b.impersonatedSubjects[s]; ok {
		return v
	}
	v := s
	if slices.ContainsFunc(b.out[s], func(e edge) bool { return b.impersonates(b.keys[e.to]) }) {
		k := b.keys[s]
		k.variant = whenImpersonated(k.variant)
		v = b.vertex(k)
		for _, e := range b.out[s] {
			role := b.keys[e.to]
			if b.impersonates(role) {
				role.variant = whenImpersonated(role.variant)
			}
			b.impliesBy(v, b.vertex(role), e.arg)
		}
	}
	b.impersonatedSubjects[s] = v
	return v
}

// whenImpersonated is the variant of subjects and roles for identities that are impersonated.
func whenImpersonated(variant uint16) uint16 {
	if variant == restricted {
		return impersonatedNode
	}
	return impersonated
}

// impersonates reports whether a role grants a right to impersonate. What grants everything in the
// whole cluster needs none.
func (b *builder) impersonates(role key) bool {
	rights := b.rightsOfRole(role.role)
	if rights.everything && role.namespace == "" {
		return false
	}
	return slices.ContainsFunc(rights.cluster, func(g grant) bool { return b.kinds[g.right].impersonates() })
}
