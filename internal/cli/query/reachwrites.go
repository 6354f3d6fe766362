package query

import (
	"context"
	"reflect"
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// standingGrant is something that a node may do independently of its pods.
type standingGrant struct {
	nodeauthz.Grant
	// Conditions are the requirements of NodeRestriction for the written object.
	Conditions []noderestriction.Condition `json:"conditions,omitempty"`
	// OwnName is true if the Node authorizer grants any name, and NodeRestriction only
	// the node's own.
	OwnName bool `json:"ownName,omitempty"`
}

// writeLimits evaluates grants of the Node authorizer by NodeRestriction.
type writeLimits struct {
	*command.Session
	who command.Identity
}

// permissions returns the verbs of a grant that NodeRestriction allows, grouped by conditions.
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

// joined adds a permission to the last one if they differ only in verbs.
func joined(all []permission, p permission) []permission {
	if last := len(all) - 1; last >= 0 && all[last].Subresource == p.Subresource && reflect.DeepEqual(all[last].Conditions, p.Conditions) {
		all[last].Verbs = append(slices.Clip(all[last].Verbs), p.Verbs...)
		return all
	}
	return append(all, p)
}

// limits evaluates one verb of a grant by NodeRestriction, as can-i does.
func (w *writeLimits) limits(g nodeauthz.Grant, verb string) (conditions []noderestriction.Condition, refused bool) {
	found, err := w.Names.Resolve(resources.Resource{Group: g.Group, Name: g.Resource}.String())
	q := command.Question{
		Verb: verb, Group: g.Group, Resource: g.Resource, Subresource: g.Subresource, Namespace: g.Namespace, Name: g.Name,
		Namespaced: err == nil && found.Namespaced,
	}
	operation, written := operation(q)
	if !written {
		return nil, false
	}
	req := writeRequest(w.Session, w.who, q, operation)
	answer, conditions := w.Restriction.Consider(context.Background(), req, open(q, req))
	return conditions, answer.Decision != verdict.Allow
}

// standing returns the part of a standing grant that NodeRestriction allows. If it refuses
// every name except the node's own, that is a grant for the node's own name.
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

func ownNameOnly(conditions []noderestriction.Condition) bool {
	return slices.ContainsFunc(conditions, func(c noderestriction.Condition) bool { return c.OwnName })
}

func (o *reachedObject) add(all []permission) {
	for _, p := range all {
		o.May = joined(o.May, p)
	}
}

// addStanding adds what a grant for all objects of the type lets the node do with this object.
// It skips create, which does not apply to an existing object.
func (o *reachedObject) addStanding(g nodeauthz.Grant, limits *writeLimits) {
	if g.Group != o.Group || g.Resource != o.Resource || g.Name != "" || g.Namespace != "" && g.Namespace != o.Namespace ||
		g.FieldSelector != "" {
		return
	}
	g.Namespace, g.Name = o.Namespace, o.Name
	if g.Subresource == "" {
		g.Verbs = slices.DeleteFunc(slices.Clone(g.Verbs), func(verb string) bool { return verb == "create" })
	}
	o.add(limits.permissions(g))
}

// addAudiences adds the audiences for which the node may request tokens of a service account: the
// audiences that the account's pods on the node use. An API server binds a token only to a pod of
// the same account.
func (o *reachedObject) addAudiences(s *command.Session) {
	for _, path := range o.Paths {
		pod, ok := s.State.Pod(path[0].To.Namespace, path[0].To.Name)
		if !ok {
			continue
		}
		audiences, restricted := s.Restriction.Audiences(pod)
		if !restricted {
			o.AnyAudience = true
			return
		}
		o.Audiences = append(o.Audiences, audiences...)
	}
	slices.Sort(o.Audiences)
	o.Audiences = slices.Compact(o.Audiences)
}
