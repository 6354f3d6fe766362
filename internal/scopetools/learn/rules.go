package learn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// joined are groups that one rule covers: groups of one resource that differ in the verb only.
type joined struct {
	ruled
	verbs []string
	paths []string
	// more are further resources.
	more []string
	// parts are the groups whose evidence is told apart: those in anywhere that a log shows.
	parts []ruled
}

// addRules adds the rules of all groups to the scope, in order, with their evidence.
func (s *Suggestion) addRules(all []ruled, grants []rbac.Grant) {
	rules := map[string]*joined{}
	slices.SortStableFunc(all, func(a, b ruled) int { return cmp.Or(cmp.Compare(a.kind, b.kind), compareGroups(a.group, b.group)) })
	for _, r := range all {
		key := strings.Join([]string{
			fmt.Sprint(r.kind), r.apiGroup, r.resource, r.field, strings.Join(r.namespaces, ","), strings.Join(r.names, ","), r.guess,
		}, "\x00")
		if r.path != "" {
			key = fmt.Sprint("paths\x00", r.verb, "\x00", r.guess)
		}
		j := rules[key]
		if j == nil {
			j = &joined{ruled: r}
			j.nodes, j.grants, j.count = map[string]bool{}, map[int]bool{}, 0
			rules[key] = j
		}
		j.join(r)
	}
	ordered := slices.SortedFunc(maps.Values(rules), func(a, b *joined) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), compareGroups(a.group, b.group), strings.Compare(a.field, b.field),
			slices.Compare(a.namespaces, b.namespaces), slices.Compare(a.names, b.names), strings.Compare(a.guess, b.guess))
	})
	for _, j := range fitting(ordered) {
		s.addRule(j, grants)
	}
}

// fitting joins the resources of rules that are otherwise the same, if there are more rules of a kind
// than a NodeScope may have.
func fitting(ordered []*joined) []*joined {
	var kinds [anywhere + 1]int
	for _, j := range ordered {
		kinds[j.kind]++
	}
	same := map[string]*joined{}
	var fit []*joined
	for _, j := range ordered {
		if kinds[j.kind] <= nodescope.MaxListed || j.kind == asNode || len(j.paths) > 0 {
			fit = append(fit, j)
			continue
		}
		key := fmt.Sprintf("%d %q %q %q %q %q", j.kind, j.apiGroup, j.verbs, j.namespaces, j.names, j.field)
		if with := same[key]; with != nil && len(with.more) < nodescope.MaxListed-1 {
			with.more = append(with.more, j.resource)
			with.parts = append(with.parts, j.parts...)
			with.count += j.count
			maps.Copy(with.nodes, j.nodes)
			maps.Copy(with.grants, j.grants)
			continue
		}
		same[key] = j
		fit = append(fit, j)
	}
	return fit
}

func (j *joined) join(r ruled) {
	if !slices.Contains(j.verbs, r.verb) {
		j.verbs = append(j.verbs, r.verb)
	}
	if r.path != "" && !slices.Contains(j.paths, r.path) {
		j.paths = append(j.paths, r.path)
		if root := strings.TrimSuffix(r.path, "/*"); root != r.path && slices.Contains([]string{"/api", "/apis"}, root) {
			j.paths = append(j.paths, root)
		}
	}
	slices.Sort(j.verbs)
	slices.Sort(j.paths)
	j.paths = slices.Compact(j.paths)
	if r.kind == anywhere && r.guess == "" && r.path == "" {
		j.parts = append(j.parts, r)
	}
	j.count += r.count
	maps.Copy(j.nodes, r.nodes)
	maps.Copy(j.grants, r.grants)
}

func (s *Suggestion) addRule(j *joined, grants []rbac.Grant) {
	spec, groups, resources := &s.Scope.Spec, []string{j.apiGroup}, append([]string{j.resource}, j.more...)
	place := ""
	switch j.kind {
	case named:
		place = fmt.Sprintf("namedAsNode[%d]", len(spec.NamedAsNode))
		spec.NamedAsNode = append(spec.NamedAsNode, v1alpha1.NamedRule{
			APIGroups: groups, Resources: resources, Verbs: j.verbs, Namespaces: j.namespaces,
		})
	case selected:
		place = fmt.Sprintf("selectsNode[%d]", len(spec.SelectsNode))
		spec.SelectsNode = append(spec.SelectsNode, v1alpha1.SelectedRule{
			APIGroups: groups, Resources: resources, Verbs: j.verbs, Namespaces: j.namespaces, Field: j.field,
		})
	case onNode:
		place = fmt.Sprintf("podsOnNode[%d]", len(spec.PodsOnNode))
		rule := v1alpha1.PodRule{Resources: resources, Verbs: j.verbs, Namespaces: j.namespaces}
		if j.apiGroup != "" {
			rule.APIGroups = groups
		}
		spec.PodsOnNode = append(spec.PodsOnNode, rule)
	case asNode:
		place, spec.AsNode = "asNode", true
	case anywhere:
		place = fmt.Sprintf("anywhere[%d]", len(spec.Anywhere))
		spec.Anywhere = append(spec.Anywhere, j.anywhere(resources))
	}
	if len(j.parts) == 0 {
		j.parts = []ruled{j.ruled}
	}
	for _, r := range j.parts {
		e := Evidence{Rule: place, Count: r.count, Nodes: len(r.nodes), Example: r.example, Guess: r.guess, GrantedBy: []string{}}
		for i := range r.grants {
			e.GrantedBy = append(e.GrantedBy, grantText(grants[i]))
		}
		slices.Sort(e.GrantedBy)
		e.GrantedBy = slices.Compact(e.GrantedBy)
		s.Evidence = append(s.Evidence, e)
	}
}

// anywhere is the rule in anywhere for resources, or for paths.
func (j *joined) anywhere(resources []string) v1alpha1.AnywhereRule {
	if len(j.paths) > 0 {
		return v1alpha1.AnywhereRule{Verbs: j.verbs, NonResourceURLs: j.paths}
	}
	return v1alpha1.AnywhereRule{
		APIGroups: []string{j.apiGroup}, Resources: resources, ResourceNames: j.names, Verbs: j.verbs, Namespaces: j.namespaces,
	}
}

// validate notes what keeps the scope from being accepted, and what it leaves open.
func (s *Suggestion) validate() {
	s.Warnings = append(s.Warnings, attackpaths.ScopeWarnings(&s.Scope.Spec, nil)...)
	object := &v1alpha1.NodeScope{ObjectMeta: metav1.ObjectMeta{Name: s.Scope.Metadata.Name}, Spec: s.Scope.Spec}
	for _, err := range nodescope.Validate(object) {
		s.Invalid = append(s.Invalid, err.Error())
	}
}

// rights adds the rights that the log does not show, and the wildcards of which it shows a part.
func (s *Suggestion) rights(c *Collector) {
	for i, g := range c.grants {
		all := []string{"system:authenticated", "system:unauthenticated"}
		if g.Subject.Kind == "Group" && slices.Contains(all, g.Subject.Name) {
			continue // all users have it
		}
		for _, right := range rightsOf(g) {
			unused, used := c.split(i, right)
			if len(used) > 0 && right.wild() {
				s.Wildcards = append(s.Wildcards, Wildcard{right, used})
			}
			if len(unused) > 0 {
				right.Verbs = unused
				s.NeverUsed = append(s.NeverUsed, right)
			}
		}
	}
	slices.SortStableFunc(s.NeverUsed, compareRights)
	slices.SortStableFunc(s.Wildcards, func(a, b Wildcard) int { return compareRights(a.Right, b.Right) })
}

func compareRights(a, b Right) int {
	return cmp.Or(strings.Compare(a.GrantedBy, b.GrantedBy), strings.Compare(a.Binding, b.Binding),
		strings.Compare(a.Resource, b.Resource), strings.Compare(a.NonResourceURL, b.NonResourceURL), slices.Compare(a.Verbs, b.Verbs))
}

// rightsOf are the rights of a rule, one for each resource or path.
func rightsOf(g rbac.Grant) []Right {
	base := Right{
		GrantedBy: grantText(g), Binding: g.Binding.String(), Namespace: g.Binding.Namespace, Verbs: g.Rule.Verbs,
		ResourceNames: g.Rule.ResourceNames,
	}
	var all []Right
	for _, apiGroup := range g.Rule.APIGroups {
		for _, resource := range g.Rule.Resources {
			right := base
			right.Resource = resource
			if apiGroup != "" {
				right.Resource += "." + apiGroup
			}
			right.rule = rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{apiGroup}, Resources: []string{resource}}
			all = append(all, right)
		}
	}
	for _, url := range g.Rule.NonResourceURLs {
		right := base
		right.NonResourceURL, right.ResourceNames = url, nil
		right.rule = rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{url}}
		all = append(all, right)
	}
	return all
}

func (r *Right) wild() bool {
	return slices.Contains(r.Verbs, "*") || strings.Contains(r.Resource, "*") || r.NonResourceURL == "*" || r.NonResourceURL == "/*"
}

// split divides the verbs of a right of a grant into those that were not used, and says what was.
func (c *Collector) split(grant int, right Right) (unused, used []string) {
	verbs := map[string]bool{}
	for g := range c.usedBy[grant] {
		if rbac.RuleAllows(&right.rule, g.request()) {
			used = append(used, words(g))
			verbs[g.verb] = true
		}
	}
	slices.Sort(used)
	for _, verb := range right.Verbs {
		if !verbs[verb] && (verb != "*" || len(verbs) == 0) {
			unused = append(unused, verb)
		}
	}
	return unused, used
}

func (g group) request() *access.Request {
	resource, subresource, _ := strings.Cut(g.resource, "/")
	return &access.Request{
		Verb: g.verb, ResourceRequest: g.path == "", Group: g.apiGroup, Resource: resource, Subresource: subresource, Path: g.path,
	}
}

// readVerbs are the verbs that change nothing.
var readVerbs = []string{"get", "list", "watch"}

// namedLikeNodes are resources whose objects have the names of nodes, with their group.
var namedLikeNodes = []group{
	{resource: "nodes"},
	{resource: "nodes/status"},
	{resource: "nodes/proxy"},
	{resource: "nodes/finalizers"},
	{apiGroup: "storage.k8s.io", resource: "csinodes"},
}

// namedLikePods are resources whose objects have the names of pods.
var namedLikePods = []group{
	{apiGroup: "cilium.io", resource: "ciliumendpoints"},
	{apiGroup: "cilium.io", resource: "ciliumendpoints/status"},
}

// FromRoles returns a NodeScope from what roles grant, without a log. It guesses only for writes whose
// meaning is known, and allows the rest anywhere.
func FromRoles(namespace, name string, grants []rbac.Grant) *Suggestion {
	s := newSuggestion(namespace, name, Roles)
	s.Notes = append(s.Notes, "without an audit log (--audit), nothing shows what the account needs. Writes of nodes, pods and "+
		"CiliumEndpoints are limited to the token's node; everything else that roles grant is allowed anywhere")
	var all []ruled
	for i, g := range grants {
		for _, right := range rightsOf(g) {
			for _, verb := range right.Verbs {
				all = append(all, guess(right, verb, i))
			}
		}
	}
	s.addRules(all, grants)
	s.validate()
	return s
}

func guess(right Right, verb string, grant int) ruled {
	r := ruled{
		kind: anywhere, group: group{verb: verb}, grants: map[int]bool{grant: true},
		guess: "granted, and nothing shows a tighter rule",
	}
	if right.NonResourceURL != "" {
		r.path = right.NonResourceURL
		return r
	}
	r.apiGroup, r.resource = right.rule.APIGroups[0], right.rule.Resources[0]
	if right.Namespace != "" {
		r.namespaces = []string{right.Namespace}
	}
	resource, sub, _ := strings.Cut(r.resource, "/")
	switch {
	case slices.Contains(readVerbs, verb) || verb == "*" || r.apiGroup == "*" || strings.Contains(r.resource, "*"):
	case slices.Contains(namedLikeNodes, group{apiGroup: r.apiGroup, resource: r.resource}) && verb != "deletecollection":
		r.kind, r.guess = named, "a write of an object that has the name of a node"
		return r
	case r.apiGroup == "" && resource == "pods" && (sub != "" || verb != "create") && verb != "deletecollection":
		r.kind, r.guess = onNode, "a write of a pod"
		return r
	case slices.Contains(namedLikePods, group{apiGroup: r.apiGroup, resource: r.resource}) && verb != "deletecollection":
		r.kind, r.guess = onNode, "a write of an object that has the name of a pod"
		return r
	case r.apiGroup == "" && r.resource == "serviceaccounts/token" && verb == "create":
		r.kind, r.guess, r.namespaces = asNode, "a token, which a node may have for pods that run on it", nil
		return r
	}
	if sorted := slices.Sorted(slices.Values(right.ResourceNames)); verb != "create" && verb != "deletecollection" {
		r.names = sorted
	}
	return r
}
