package nodeauthz

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Grant is something that a node may do.
type Grant struct {
	// Group, Resource and Subresource are what may be requested; an empty Group is the core group, and
	// no Subresource the object itself.
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Verbs are what may be done.
	Verbs []string `json:"verbs"`
	// Namespace is the only namespace of the grant; empty for all, and for resources without one.
	Namespace string `json:"namespace,omitempty"`
	// Name is the object of the grant; empty for all objects.
	Name string `json:"name,omitempty"`
	// FieldSelector that a request must have, empty if none.
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Rule is the condition of the grant, in words.
	Rule string `json:"rule"`
	// Paths are the relations of a grant through the graph, the shortest first.
	Paths []verdict.Path `json:"paths,omitempty"`
	// Kind is the kind of the object of a grant through the graph.
	Kind string `json:"kind,omitempty"`
}

// Reach is everything that the Node authorizer allows a node's credential.
// NodeRestriction further limits what it may write.
type Reach struct {
	Node string `json:"node"`
	// Standing grants do not depend on the pods of the node.
	Standing []Grant `json:"standing"`
	// Related grants exist as long as their relations.
	Related []Grant `json:"related"`
}

// Reach returns everything that the named node may do, in the order of the rules, and
// within a rule by namespace and name.
func (a *Authorizer) Reach(node string) Reach {
	reach := Reach{Node: node, Standing: []Grant{}, Related: []Grant{}}
	a.eachRule(func(e *entry, r *rule) {
		if strings.Contains(e.name, "/") {
			return // another notation of listed rules
		}
		if g, ok := r.standing(e, node); ok {
			reach.Standing = append(reach.Standing, g)
		}
	})
	for _, object := range a.graph.Reach(node) {
		if a.ignores(object.Kind) {
			if object.Paths = counting(object.Paths); len(object.Paths) == 0 {
				continue
			}
		}
		a.eachRule(func(e *entry, r *rule) {
			if e.kind == object.Kind && (r.condition == related || r.condition == selectedOrRelated) {
				g := r.grant(e)
				g.Namespace, g.Name = object.Namespace, object.Name
				g.Rule = (&rule{condition: related}).words()
				g.Kind, g.Paths = object.Kind.String(), object.Paths
				reach.Related = append(reach.Related, g)
			}
		})
	}
	return reach
}

func (a *Authorizer) eachRule(visit func(*entry, *rule)) {
	for i := range resources {
		e := a.table.find(resources[i].group, resources[i].name)
		if e == nil {
			continue
		}
		for j := range e.rules {
			visit(e, &e.rules[j])
		}
	}
}

func (r *rule) grant(e *entry) Grant {
	g := Grant{Group: e.group, Resource: e.name, Verbs: r.verbs.names(), Rule: r.words()}
	if r.subresource != anySubresource {
		g.Subresource = r.subresource
	}
	return g
}

// standing returns the grant of a rule that does not depend on relations.
func (r *rule) standing(e *entry, node string) (Grant, bool) {
	g := r.grant(e)
	switch r.condition {
	case granted:
	case ownName:
		g.Name = node
	case selected, selectedOrRelated:
		g.FieldSelector = nodeNameField + "=" + node
		g.Rule = "with the field selector " + g.FieldSelector
	case leaseNamespace:
		g.Namespace = leasesNamespace
	case ownLease:
		g.Namespace, g.Name = leasesNamespace, node
	default:
		return g, false
	}
	return g, true
}

// words describes a rule's condition.
func (r *rule) words() string {
	switch r.condition {
	case granted:
		return "every node"
	case related:
		return "related to the node"
	case ownName:
		return "bears the node's name"
	case selected:
		return "with the field selector " + nodeNameField + "=<node>"
	case selectedOrRelated:
		return "related to the node, or with the field selector " + nodeNameField + "=<node>"
	case leaseNamespace:
		return "in namespace " + leasesNamespace
	case ownLease:
		return "bears the node's name, in namespace " + leasesNamespace
	}
	return ""
}

// namedRule is a rule in the form of RBAC: verbs on a resource (with its
// subresource), for all objects or for named ones.
type namedRule struct {
	group, resource string
	verbs, names    []string
}

// namedRules returns a node's rules at cluster scope and in one namespace, and
// whether they are complete: rules that require a field selector have no such form.
func (a *Authorizer) namedRules(node, namespace string) (rules []namedRule, complete bool) {
	reach := a.Reach(node)
	complete = true
	add := func(g Grant) {
		if g.FieldSelector != "" {
			complete = false
			return
		}
		if g.Namespace != "" && g.Namespace != namespace {
			return
		}
		r := namedRule{group: g.Group, resource: g.Resource, verbs: g.Verbs}
		if g.Subresource != "" {
			r.resource += "/" + g.Subresource
		}
		if g.Name != "" {
			r.names = []string{g.Name}
		}
		if last := len(rules) - 1; last >= 0 && r.names != nil && rules[last].joins(r) {
			rules[last].names = append(rules[last].names, g.Name)
			return
		}
		rules = append(rules, r)
	}
	for _, g := range reach.Standing {
		add(g)
	}
	slices.SortStableFunc(reach.Related, func(x, y Grant) int {
		return strings.Compare(x.Group+"/"+x.Resource+"/"+x.Subresource+" "+strings.Join(x.Verbs, ","),
			y.Group+"/"+y.Resource+"/"+y.Subresource+" "+strings.Join(y.Verbs, ","))
	})
	for _, g := range reach.Related {
		add(g)
	}
	return rules, complete
}

// joins reports whether both rules differ in their names only.
func (r namedRule) joins(s namedRule) bool {
	return r.group == s.group && r.resource == s.resource && r.names != nil && slices.Equal(r.verbs, s.verbs)
}

// KindOf returns the kind of the objects of a resource that the graph relates
// to nodes, and whether there is one.
func KindOf(group, name string) (graph.Kind, bool) {
	for i := range resources {
		r := &resources[i]
		if r.group == group && r.name == name && r.kind != graph.Node {
			return r.kind, true
		}
	}
	return 0, false
}
