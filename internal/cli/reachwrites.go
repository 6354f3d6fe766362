package cli

import (
	"context"
	"reflect"
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// standingGrant is something that a node may do whatever runs on it.
type standingGrant struct {
	nodeauthz.Grant
	// Conditions are what NodeRestriction requires of what is written.
	Conditions []noderestriction.Condition `json:"conditions,omitempty"`
	// OwnName is true where the Node authorizer grants any name, and NodeRestriction
	// leaves the node's own, which is Name.
	OwnName bool `json:"ownName,omitempty"`
}

// writeLimits puts what the Node authorizer grants a node to NodeRestriction.
type writeLimits struct {
	*session
	who identity
}

// permissions are the verbs of a grant that NodeRestriction leaves, those of the same
// conditions together.
func (w *writeLimits) permissions(g nodeauthz.Grant) []permission {
	var all []permission
	for _, verb := range g.Verbs {
		conditions, refused := w.limits(g, verb)
		if refused {
			continue
		}
		all = joined(all, permission{Verbs: []string{verb}, Subresource: g.Subresource, Conditions: conditions})
	}
	return all
}

// joined adds a permission to the last, if they differ in verbs only.
func joined(all []permission, p permission) []permission {
	if last := len(all) - 1; last >= 0 && all[last].Subresource == p.Subresource && reflect.DeepEqual(all[last].Conditions, p.Conditions) {
		all[last].Verbs = append(slices.Clip(all[last].Verbs), p.Verbs...)
		return all
	}
	return append(all, p)
}

// limits asks NodeRestriction about one verb of a grant, as can-i does.
func (w *writeLimits) limits(g nodeauthz.Grant, verb string) (conditions []noderestriction.Condition, refused bool) {
	q := question{
		Verb: verb, Group: g.Group, Resource: g.Resource, Subresource: g.Subresource, Namespace: g.Namespace, Name: g.Name,
		namespaced: w.namespaced(g),
	}
	operation, written := q.operation()
	if !written {
		return nil, false
	}
	req := w.writeRequest(w.who, q, operation)
	answer, conditions := w.Restriction.Consider(context.Background(), req, q.open(req))
	return conditions, answer.Decision != verdict.Allow
}

func (s *session) namespaced(g nodeauthz.Grant) bool {
	found, err := s.names.Resolve(resources.Resource{Group: g.Group, Name: g.Resource}.String())
	return err == nil && found.Namespaced
}

// standing is what NodeRestriction leaves of a standing grant. Where it refuses every
// name but the node's own, that is the grant for the node's own name.
func (w *writeLimits) standing(g nodeauthz.Grant) []standingGrant {
	var all []standingGrant
	for _, p := range w.permissions(g) {
		left := standingGrant{Grant: g, Conditions: p.Conditions}
		left.Verbs = p.Verbs
		if !ownNameOnly(p.Conditions) {
			all = append(all, left)
			continue
		}
		left.Name, left.OwnName = w.who.Node, true
		for _, named := range w.permissions(left.Grant) {
			left.Verbs, left.Conditions = named.Verbs, named.Conditions
			all = append(all, left)
		}
	}
	return all
}

// ownNameOnly reports whether only what has the node's own name meets the conditions.
func ownNameOnly(conditions []noderestriction.Condition) bool {
	return slices.ContainsFunc(conditions, func(c noderestriction.Condition) bool { return c.OwnName })
}

// add joins permissions with those that are there.
func (o *reachedObject) add(all []permission) {
	for _, p := range all {
		o.May = joined(o.May, p)
	}
}

// addStanding adds what a grant for all objects of the type lets the node do with this
// one. What creates an object is about another.
func (o *reachedObject) addStanding(g nodeauthz.Grant, limits *writeLimits) {
	if g.Group != o.Group || g.Resource != o.Resource || g.Name != "" || g.Namespace != "" && g.Namespace != o.Namespace || g.FieldSelector != "" {
		return
	}
	g.Namespace, g.Name = o.Namespace, o.Name
	if g.Subresource == "" {
		g.Verbs = slices.DeleteFunc(slices.Clone(g.Verbs), func(verb string) bool { return verb == "create" })
	}
	o.add(limits.permissions(g))
}
