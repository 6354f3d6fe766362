package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

type expressed struct {
	// rule is its place in spec: "namedAsNode[0]".
	rule string
	// named says whether it is about a write, and passes whether it lets such a write pass.
	named, passes string
	// cannot are the parts that let pass more than the rule.
	cannot []string
}

const (
	never  = "false"
	always = "true"
)

// operations are the operations of admission that verbs lead to, by the verbs.
var operations = []struct {
	name  string
	verbs []string
}{
	{"CREATE", []string{"create"}},
	{"UPDATE", []string{"update", "patch"}},
	{"DELETE", []string{"delete", "deletecollection"}},
	{"CONNECT", []string{"create", "get", "update", "patch", "delete"}},
}

// podSubresources are the resources that pods/* stands for.
var podSubresources = []string{
	"pods", "pods/attach", "pods/binding", "pods/ephemeralcontainers", "pods/eviction", "pods/exec", "pods/log",
	"pods/portforward", "pods/proxy", "pods/resize", "pods/status",
}

// match is the requests that a rule names, as in RBAC.
type match struct{ groups, resources, verbs, namespaces []string }

func all(conditions ...string) string {
	conditions = slices.DeleteFunc(conditions, func(c string) bool { return c == "" || c == always })
	switch {
	case slices.Contains(conditions, never):
		return never
	case len(conditions) == 0:
		return always
	}
	return strings.Join(parenthesised(conditions), " && ")
}

func one(conditions ...string) string {
	conditions = slices.DeleteFunc(conditions, func(c string) bool { return c == "" || c == never })
	switch {
	case slices.Contains(conditions, always):
		return always
	case len(conditions) == 0:
		return never
	}
	return strings.Join(parenthesised(conditions), " || ")
}

func parenthesised(conditions []string) []string {
	if len(conditions) == 1 {
		return conditions
	}
	written := make([]string, len(conditions))
	for i, c := range conditions {
		written[i] = "(" + c + ")"
	}
	return written
}

// named is true for the writes that a rule is about.
func (m *match) named() string {
	var known []string
	for _, o := range operations {
		if slices.ContainsFunc(o.verbs, m.hasVerb) {
			known = append(known, o.name)
		}
	}
	if len(known) == 0 {
		return never
	}
	return all("request.operation in "+celList(known), m.groupsMatch(), m.resourcesMatch(), m.namespacesMatch())
}

// deletion is true unless the write deletes with a verb that the rule does not have. A deletion without
// a name is one of a collection.
func (m *match) deletion() string {
	one, many := m.hasVerb("delete"), m.hasVerb("deletecollection")
	switch {
	case one == many:
		return always
	case one:
		return "request.operation != 'DELETE' || variables.name != ''"
	}
	return "request.operation != 'DELETE' || variables.name == ''"
}

func (m *match) hasVerb(verb string) bool {
	return slices.Contains(m.verbs, verb) || slices.Contains(m.verbs, "*")
}

func (m *match) groupsMatch() string {
	if slices.Contains(m.groups, "*") {
		return always
	}
	return "variables.group in " + celList(m.groups)
}

func (m *match) resourcesMatch() string {
	if slices.Contains(m.resources, "*") {
		return always
	}
	var of []string
	for _, r := range m.resources {
		if sub, ok := strings.CutPrefix(r, "*/"); ok {
			of = append(of, sub)
		}
	}
	exact := "variables.resource in " + celList(m.resources)
	if len(of) == 0 {
		return exact
	}
	return one(exact, "variables.subresource in "+celList(of))
}

func (m *match) namespacesMatch() string {
	if len(m.namespaces) == 0 {
		return always
	}
	return "variables.objectNamespace in " + celList(m.namespaces)
}

// express writes the rules of a scope in CEL, without those that are about no write.
func express(spec *v1alpha1.NodeScopeSpec) []expressed {
	var rules []expressed
	if spec.AsNode {
		rules = append(rules, asNode())
	}
	for i, r := range spec.NamedAsNode {
		m := match{r.APIGroups, r.Resources, r.Verbs, r.Namespaces}
		rules = append(rules, expressed{rule: fmt.Sprintf("namedAsNode[%d]", i), named: m.named(), passes: all(m.deletion(), ownName)})
	}
	for i, r := range spec.SelectsNode {
		rules = append(rules, selectsNode(fmt.Sprintf("selectsNode[%d]", i), &r))
	}
	for i, r := range spec.PodsOnNode {
		rules = append(rules, podsOnNode(fmt.Sprintf("podsOnNode[%d]", i), &r))
	}
	for i, r := range spec.Anywhere {
		rules = append(rules, anywhere(fmt.Sprintf("anywhere[%d]", i), &r))
	}
	return slices.DeleteFunc(rules, func(e expressed) bool { return e.named == never })
}

func asNode() expressed {
	e := expressed{rule: "asNode"}
	var named, passes []string
	for _, r := range asNodeRules {
		about := all("request.operation in "+celList(r.operations), "variables.group == "+celLiteral(r.group), r.about())
		named = append(named, about)
		passes = append(passes, all(append([]string{about}, r.requires...)...))
		if r.open != "" {
			e.cannot = append(e.cannot, r.name()+": "+r.open)
		}
	}
	e.named, e.passes = one(named...), one(passes...)
	return e
}

func (r *asNodeRule) name() string {
	if r.subresource == "" {
		return r.resource
	}
	return r.resource + "/" + r.subresource
}

func (r *asNodeRule) about() string {
	if r.subresource == "*" {
		return "request.resource.resource == " + celLiteral(r.resource)
	}
	return "variables.resource == " + celLiteral(r.name())
}

// selectsNode: of lists and watches admission sees nothing, and of a deletecollection each object.
func selectsNode(name string, r *v1alpha1.SelectedRule) expressed {
	e := expressed{rule: name, named: never, passes: never}
	if !slices.Contains(r.Verbs, "deletecollection") {
		return e
	}
	m := match{r.APIGroups, r.Resources, []string{"deletecollection"}, r.Namespaces}
	e.named = m.named()
	check := ""
	switch r.Field {
	case "spec.nodeName":
		check = oldNode + " == variables.node"
	case "metadata.name":
		check = "oldObject != null && oldObject.metadata.name == variables.node"
	default:
		e.cannot = []string{"whether deleted objects have the node's name in " + r.Field}
	}
	e.passes = all(m.deletion(), check)
	return e
}

// podsOnNode: an update and a deletion of a pod show its node, and nothing else does.
func podsOnNode(name string, r *v1alpha1.PodRule) expressed {
	groups := r.APIGroups
	if len(groups) == 0 {
		groups = []string{""}
	}
	resources := r.Resources
	if i := slices.Index(resources, "pods/*"); i >= 0 {
		resources = slices.Concat(resources[:i], podSubresources, resources[i+1:])
	}
	m := match{groups, resources, r.Verbs, r.Namespaces}
	e := expressed{rule: name, named: m.named()}
	if e.named == never {
		return e
	}
	shown := []string{"pods", "pods/status", "pods/ephemeralcontainers", "pods/resize"}
	core := ""
	if slices.ContainsFunc(groups, func(group string) bool { return group != "" }) {
		core = "variables.group == ''"
	}
	onNode := all(core, "variables.resource in "+celList(shown), "request.operation in ['UPDATE', 'DELETE']",
		"variables.name != ''", oldNode+" == variables.node")
	var open []string
	if hidden := hiddenPods(groups, resources, shown); len(hidden) > 0 {
		open = append(open, all(core, "variables.resource in "+celList(hidden), "variables.name != ''"))
		e.cannot = append(e.cannot, strings.Join(hidden, ", ")+": the request does not show the pod's node")
	}
	if named := namedAsPods(groups, resources); len(named) > 0 {
		open = append(open, all("variables.group != '' || variables.resource != 'pods' && !variables.resource.startsWith('pods/')",
			"variables.name != ''", "variables.objectNamespace != ''"))
		e.cannot = append(e.cannot, strings.Join(named, ", ")+": the request does not show whether a pod of that name is on the node")
	}
	e.passes = all(m.deletion(), one(append([]string{onNode}, open...)...))
	return e
}

// hiddenPods are the resources of pods whose requests do not show the node.
func hiddenPods(groups, resources, shown []string) []string {
	if !slices.Contains(groups, "") {
		return nil
	}
	var hidden []string
	for _, resource := range resources {
		if isPods(resource) && !slices.Contains(shown, resource) && resource != "pods/log" {
			hidden = append(hidden, resource)
		}
	}
	return hidden
}

// namedAsPods are the resources whose objects must have the name of a pod, with their groups.
func namedAsPods(groups, resources []string) []string {
	var named []string
	for _, group := range groups {
		for _, resource := range resources {
			if group != "" || !isPods(resource) {
				named = append(named, strings.TrimSuffix(resource+"."+group, "."))
			}
		}
	}
	return named
}

func isPods(resource string) bool { return resource == "pods" || strings.HasPrefix(resource, "pods/") }

// anywhere: a create has no name when it is authorized, so that a rule with names does not let it pass.
func anywhere(name string, r *v1alpha1.AnywhereRule) expressed {
	if len(r.Resources) == 0 {
		return expressed{rule: name, named: never, passes: never} // paths are not admitted
	}
	m := match{r.APIGroups, r.Resources, r.Verbs, r.Namespaces}
	e := expressed{rule: name, named: m.named()}
	named := always
	if len(r.ResourceNames) > 0 {
		named = all("variables.name in "+celList(r.ResourceNames), "request.operation != 'CREATE' || variables.subresource != ''")
		// A write with another name is not named.
		e.named = all(e.named, "variables.name in "+celList(r.ResourceNames))
	}
	e.passes = all(m.deletion(), named)
	return e
}
