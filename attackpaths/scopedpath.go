package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// scopeText names the scopes that let a step pass, and the node that they limit it to; empty if no scope
// is about it.
func (s *solver) scopeText(how via, to vertex) string {
	if s.enforced == 0 {
		return ""
	}
	for _, v := range s.parts(how) {
		if text := s.scopeTextOf(v, passing{v, to}); text != "" {
			return text
		}
	}
	return ""
}

// scopeTextOf follows a derivation back from a right to the token that has it.
func (s *solver) scopeTextOf(v vertex, by passing) string {
	for v != none {
		switch k := s.keys[v]; k.kind {
		case isScoped, isAssociated:
			a := s.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}]
			if a == nil {
				return ""
			}
			text := a.title()
			if rules := s.passedBy[by].rules; rules != "" {
				text = rules
			}
			if node := s.keys[k.of]; k.kind == isAssociated && node.kind == isNodeUser {
				return text + " lets it pass for node " + node.name[len(nodeUserPrefix):]
			}
			return text + " lets it pass"
		case isRight, isCustom:
		default:
			return ""
		}
		if s.via[v].join >= 0 {
			return ""
		}
		from := s.via[v].from
		v, by = from, passing{from, v}
	}
	return ""
}

// scopedSubjects are the subjects of an account in scopes that a binding names.
func (g *Graph) scopedSubjects(k key, binding int32) []vertex {
	var found []vertex
	for _, v := range g.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}].subjects {
		if slices.ContainsFunc(g.out[v], func(e edge) bool { return e.arg == binding }) {
			found = append(found, v)
		}
	}
	return found
}

// isScopedAccount reports whether a vertex is an account that enforced scopes are about.
func (g *Graph) isScopedAccount(k key) bool {
	return (k.kind == isScoped || k.kind == isAssociated || k.kind == isServiceAccount) &&
		g.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}] != nil
}
