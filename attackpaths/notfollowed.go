package attackpaths

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// HostPath is the resource of an entry about folders of nodes that pods mount. Its names are the folders, and its namespaces
// the namespaces of the pods.
const HostPath = "hostPath"

// NotFollowed is a right that is reached and that may give something which paths do not follow.
type NotFollowed struct {
	// Group, Resource and Subresource say what the right is about. The resource may be * for every resource, the
	// group * for every group, and the resource a path such as /logs/*, or [HostPath].
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Verbs are sorted; * is any.
	Verbs []string `json:"verbs"`
	// Names are the only objects that the right is about, the first five; empty for any object.
	Names []string `json:"names,omitempty"`
	// Namespaces are where the right is held, the first five; empty for a right in the whole cluster.
	Namespaces []string `json:"namespaces,omitempty"`
	// More is true if there are more names or namespaces.
	More bool `json:"more,omitempty"`
	// GrantedBy is a binding that grants it; nil for a role that can be bound, and for folders.
	GrantedBy *rbac.Ref `json:"grantedBy,omitempty"`
	// Why says what the right may give, and who decides.
	Why string `json:"why"`
}

const (
	// maxNamed is how many namespaces and names an entry lists, and one more tells whether there are more.
	maxNamed = 5
	// whyCustom is about resources of which nothing is known.
	whyCustom     = "no API server of Kubernetes serves it: what its controllers do for who writes it, and what it holds, decides"
	whyFolder     = "the table of folders has no row for it: what programs of the node do with the files there decides"
	whyEverything = "everything in the namespace: all of the rights in docs/rights.md that are not followed, and custom resources"
	// oldGroup had resources that moved to other groups before the supported minors.
	oldGroup = "extensions"
)

// openRightsOfRole lists the rights of a role that are not followed.
func (g *Graph) openRightsOfRole(role int32) []openRight {
	if all := g.open[role].Load(); all != nil {
		return *all
	}
	var all []openRight
	for i := range g.roles[role].Rules {
		all = append(all, g.openRightsOfRule(&g.roles[role].Rules[i])...)
	}
	g.open[role].Store(&all)
	return all
}

// openRightsOfRule lists what a rule grants of the table, and of resources that the table does not have. What is not there
// cannot be changed.
func (g *Graph) openRightsOfRule(rule *rbacv1.PolicyRule) []openRight {
	if grantsEverything(rule) {
		all := openEntry{verbs: []string{"*"}}
		return []openRight{{rightKey: rightKey{group: "*", resource: "*", why: whyEverything}, openEntry: all}}
	}
	groups := rule.APIGroups
	if slices.Contains(groups, "*") {
		groups = slices.Sorted(maps.Keys(openTable))
	}
	if len(rule.NonResourceURLs) > 0 {
		groups = append(slices.Clone(groups), "")
	}
	names := rule.ResourceNames
	var all []openRight
	for _, group := range groups {
		for _, r := range openTable[group] {
			if !r.grantedBy(rule) || group == admis && !g.mayChange(r.Resource, rule.ResourceNames...) {
				continue
			}
			k := rightKey{group, r.Resource, r.Subresource, r.NotFollowed}
			if last := len(all) - 1; last < 0 || all[last].rightKey != k {
				all = append(all, openRight{rightKey: k, openEntry: openEntry{names: names}, clusterScoped: r.clusterScoped})
			}
			last := &all[len(all)-1]
			last.verbs = append(last.verbs, r.Verb)
		}
	}
	for _, group := range rule.APIGroups {
		if _, known := openTable[group]; known && group != "*" || group == oldGroup {
			continue
		}
		for _, name := range rule.Resources {
			r := openRight{rightKey: rightKey{group: group, why: whyCustom}, openEntry: openEntry{names: names}}
			r.resource, r.subresource, _ = strings.Cut(name, "/")
			r.verbs = g.uncovered(&r.rightKey, rule.Verbs)
			served := g.serves == nil || group == "*" || r.resource == "*" || g.serves(group, r.resource)
			if served && len(r.verbs) > 0 {
				all = append(all, r)
			}
		}
	}
	return all
}

// grantedBy reports whether a rule grants the right, for any object.
func (r *TableRight) grantedBy(rule *rbacv1.PolicyRule) bool {
	if strings.HasPrefix(r.Resource, "/") {
		path := strings.TrimSuffix(r.Resource, "*")
		return (slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Verbs, r.Verb)) &&
			slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
				prefix, any := strings.CutSuffix(url, "*")
				return strings.HasPrefix(url, path) || url == strings.TrimSuffix(path, "/") || any && strings.HasPrefix(path, prefix)
			})
	}
	if r.Resource == "*" || r.Subresource == "*" { // any name: what the rule names
		if slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Verbs, r.Verb) {
			return true
		}
	}
	req := access.Request{ResourceRequest: true, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource}
	if len(rule.ResourceNames) > 0 {
		req.Name = rule.ResourceNames[0]
	}
	return rbac.RuleAllows(rule, &req)
}

// uncovered are the verbs on a resource that no custom technique is about. One that names the resource covers
// reading and deleting too: its author knows what the resource is.
func (g *Graph) uncovered(k *rightKey, verbs []string) []string {
	covered := map[string]bool{}
	for _, q := range g.kinds[len(table):] {
		if q.group == k.group && q.resource == k.resource && q.subresource == k.subresource {
			for _, verb := range slices.Concat(q.verbs, strings.Fields(reads), strings.Fields(removes)) {
				covered[verb] = true
			}
		}
	}
	if len(covered) > 0 && slices.Contains(verbs, "*") {
		verbs = strings.Fields(every)
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return covered[verb] })
}
