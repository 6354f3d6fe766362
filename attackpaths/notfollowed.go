package attackpaths

import (
	"cmp"
	"maps"
	"math"
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
	whyEverything = "everything in the namespace: all of the rights in docs/reference/rights.md that are not followed, and custom resources"
	// oldGroup had resources that moved to other groups before the supported minors.
	oldGroup = "extensions"
)

// openTable are the rights of the table that are not followed, by group: it has each group. It never changes.
var openTable = openByGroup()

func openByGroup() map[string][]*TableRight {
	all := map[string][]*TableRight{}
	for _, r := range allRights {
		open := all[r.Group]
		if r.NotFollowed != "" {
			open = append(open, r)
		}
		all[r.Group] = open
	}
	return all
}

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

// openRights are rights that are not followed, by what they are about. Sums of them stay small, however
// many roles and namespaces there are.
type openRights struct {
	entries map[rightKey]openEntry
}

func newOpenRights() *openRights { return &openRights{map[rightKey]openEntry{}} }

// rightKey is what the rights of an entry have in common.
type rightKey struct{ group, resource, subresource, why string }

func (k rightKey) compare(o rightKey) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.resource, o.resource),
		cmp.Compare(k.subresource, o.subresource), cmp.Compare(k.why, o.why))
}

// openEntry sums up the rights of one key.
type openEntry struct {
	// names and namespaces are the first ones. The empty namespace is the whole cluster; names do not matter if anyName is set.
	verbs, names, namespaces []string
	anyName                  bool
	// binding is the first that grants one of the rights; -1 if none does.
	binding int32
}

// openRight is a right of a role that is not followed. The role's binding, and where it is held, are not known yet.
type openRight struct {
	rightKey
	openEntry
	clusterScoped bool
}

// openRightsOf sums up the rights of the roles among reached vertices.
func (g *Graph) openRightsOf(reached []vertex) *openRights {
	all := newOpenRights()
	for _, v := range reached {
		switch k := &g.keys[v]; k.kind {
		case isSubject:
			for _, e := range g.edges.Out[v] {
				if to := &g.keys[e.To]; to.kind == isRole {
					all.addRole(g.openRightsOfRole(to.role), to.namespace, e.Arg)
				}
			}
		case isRole:
			if k.variant != anybody && k.variant != restricted { // others come with their subject
				all.addRole(g.openRightsOfRole(k.role), k.namespace, -1)
			}
		case isPod:
			p := g.pods[v-g.firstPod]
			if folders := p.NotFollowed(g.world.references); len(folders) > 0 {
				all.add(rightKey{resource: HostPath, why: whyFolder}, openEntry{
					verbs: []string{"mount"}, names: folders, namespaces: []string{p.Namespace}, binding: -1,
				})
			}
		}
	}
	return all
}

// addRole adds the rights of a role that is held in a namespace, or in the whole cluster.
func (o *openRights) addRole(rights []openRight, namespace string, binding int32) {
	for i := range rights {
		r := &rights[i]
		if r.clusterScoped && namespace != "" || r.why == whyEverything && namespace == "" {
			continue // the latter is cluster-admin
		}
		o.add(r.rightKey, openEntry{r.verbs, r.names, []string{namespace}, len(r.names) == 0, binding})
	}
}

// merge adds other rights, which may be none.
func (o *openRights) merge(others *openRights) {
	if others == nil {
		return
	}
	for k, e := range others.entries {
		o.add(k, e)
	}
}

func (o *openRights) add(k rightKey, more openEntry) {
	e, known := o.entries[k]
	if !known {
		e.binding = -1
	}
	e.verbs = addSorted(e.verbs, more.verbs, math.MaxInt)
	e.names = addSorted(e.names, more.names, maxNamed+1)
	e.namespaces = addSorted(e.namespaces, more.namespaces, maxNamed+1)
	e.anyName = e.anyName || more.anyName
	if more.binding >= 0 && (e.binding < 0 || more.binding < e.binding) {
		e.binding = more.binding
	}
	o.entries[k] = e
}

// addSorted adds words to sorted ones, and keeps the first of them.
func addSorted(all, words []string, keep int) []string {
	for _, w := range words {
		if i, found := slices.BinarySearch(all, w); !found {
			all = slices.Insert(all, i, w)
			all = all[:min(keep, len(all))]
		}
	}
	return all
}

// list makes the entries of an answer.
func (o *openRights) list(g *Graph) []NotFollowed {
	var all []NotFollowed
	for _, k := range slices.SortedFunc(maps.Keys(o.entries), rightKey.compare) {
		e := o.entries[k]
		n := NotFollowed{Group: k.group, Resource: k.resource, Subresource: k.subresource, Verbs: e.verbs, Why: k.why}
		if slices.Contains(e.verbs, "*") {
			n.Verbs = []string{"*"}
		}
		if !e.anyName {
			n.More = len(e.names) > maxNamed
			n.Names = e.names[:min(maxNamed, len(e.names))]
		}
		if e.namespaces[0] != "" {
			n.More = n.More || len(e.namespaces) > maxNamed
			n.Namespaces = e.namespaces[:min(maxNamed, len(e.namespaces))]
		}
		if e.binding >= 0 {
			n.GrantedBy = &g.bindings[e.binding].Binding
		}
		all = append(all, n)
	}
	return all
}
