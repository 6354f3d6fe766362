package query

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/cli/paths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
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

// rbacGrant is a rule that a binding gives to a node.
type rbacGrant struct {
	// Binding gives Role to Subject, which is the user or a group of the node.
	Binding rbac.Ref `json:"binding"`
	Role    rbac.Ref `json:"role"`
	Subject string   `json:"subject"`
	// Namespace is the namespace of the grant; empty for the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Rule is the rule of the role.
	Rule rbacv1.PolicyRule `json:"rule"`
	// OwnName are the resources of the rule of which NodeRestriction lets the node write
	// only objects with its own name.
	OwnName []string `json:"ownName,omitempty"`
}

// rbacGrants returns what roles and bindings grant to a user. Bindings to roles that do not
// exist grant nothing.
func rbacGrants(s *command.Session, who command.Identity, only command.Filter) ([]rbacGrant, error) {
	grants, err := s.State.RBAC.Grants(who.User, who.Groups)
	if err != nil && !errors.Is(err, rbac.ErrRoleNotFound) {
		return nil, err
	}
	kept, limits := []rbacGrant{}, &writeLimits{Session: s, who: who}
	for _, g := range grants {
		if !only.Rule(g) {
			continue
		}
		kept = append(kept, rbacGrant{
			Binding: g.Binding, Role: g.Role, Namespace: g.Binding.Namespace, Rule: *g.Rule,
			Subject: strings.ToLower(g.Subject.Kind) + " " + g.Subject.Name, OwnName: limits.ownNames(*g.Rule),
		})
	}
	return kept, nil
}

// ownNames returns the resources of a rule of which the node may write only objects with its
// own name, independently of the names that the rule allows.
func (w *writeLimits) ownNames(rule rbacv1.PolicyRule) []string {
	rule.ResourceNames = nil
	var names []string
	for _, r := range []nodeauthz.Grant{
		{Resource: "nodes"},
		{Group: coordinationv1.GroupName, Resource: "leases", Namespace: leaseNamespace},
		{Group: storagev1.GroupName, Resource: "csinodes"},
	} {
		if w.writesOwnNameOnly(&rule, r) {
			names = append(names, r.Resource)
		}
	}
	return names
}

func (w *writeLimits) writesOwnNameOnly(rule *rbacv1.PolicyRule, of nodeauthz.Grant) bool {
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		for _, subresource := range []string{"", "status"} {
			if !rbac.RuleAllows(rule, &access.Request{
				User: w.who.User, Groups: w.who.Groups, Verb: verb, ResourceRequest: true,
				Group: of.Group, Resource: of.Resource, Subresource: subresource, Namespace: of.Namespace,
			}) {
				continue
			}
			of.Subresource = subresource
			if conditions, _ := w.limits(of, verb); ownNameOnly(conditions) {
				return true
			}
		}
	}
	return false
}

// leaseNamespace is the namespace of the leases of nodes.
const leaseNamespace = "kube-node-lease"

func (g rbacGrant) writes() bool {
	return len(g.Rule.Resources) > 0 && slices.ContainsFunc(g.Rule.Verbs, func(verb string) bool {
		_, written := operation(command.Question{Verb: verb})
		return written || verb == rbacv1.VerbAll
	})
}

// reachPaths is what the node leads to in the end, by all attack paths.
type reachPaths struct {
	// ClusterAdmin says whether the node leads to the whole cluster.
	ClusterAdmin attackpaths.Certainty `json:"clusterAdmin"`
	// Counts are how many holdings of each kind are reached without cluster-admin.
	Counts []attackpaths.Count `json:"counts,omitempty"`
	// Missing is the state that could not be read and that only attack paths need.
	Missing []command.Missing `json:"missing,omitempty"`

	unread bool
}

func attackPathsTotal(s *command.Session, node string) (*reachPaths, error) {
	g, err := paths.AttackGraph(s, &paths.AttackPathsFlags{})
	if err != nil {
		return nil, err
	}
	reached, err := g.From(attackpaths.Holding{Kind: attackpaths.Node, Name: node})
	if err != nil {
		// Only a volume attachment or the like names the node.
		none := command.Missing{Resource: "nodes", Reason: err.Error() + ": it has neither the Node object nor a pod on the node"}
		return &reachPaths{Missing: []command.Missing{none}, unread: true}, nil
	}
	total := &reachPaths{
		ClusterAdmin: reached.ClusterAdmin, Counts: paths.CountHoldings(reached.Reached), Missing: s.MissingOf(source.Missing.ForInventory),
		unread: len(paths.MissingForPaths(s, paths.NodesOf(reached)...)) > 0,
	}
	return total, nil
}

// missingForReach is the state that could not be read and that answers about a node need: NodeScopes, and the APIServices that they
// depend on, are about accounts only.
func missingForReach(s *command.Session) []command.Missing {
	return s.MissingOf(func(m source.Missing) bool {
		return !m.ForInventory() && m.Kind&(source.NodeScopes|source.APIServices) == 0
	})
}

func (t *reachPaths) text(node string) string {
	var parts []string
	switch {
	case t.ClusterAdmin != attackpaths.No:
		parts = append(parts, paths.StyleOf(t.ClusterAdmin).In("cluster-admin is "+strings.ToLower(t.ClusterAdmin.String())))
	case t.unread:
		parts = append(parts, render.Unsure.In("cluster-admin is unknown"))
	default:
		parts = append(parts, paths.StyleOf(t.ClusterAdmin).In("not cluster-admin"))
	}
	if totals := paths.CountTexts(t.Counts); totals != "" && t.ClusterAdmin != attackpaths.Certain {
		parts = append(parts, totals)
	}
	return strings.Join(parts, "; ") + render.Faint.In(" (node-authorizer attack-paths node/"+node+")")
}
