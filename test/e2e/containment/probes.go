package containment

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// probe is a request that a right allows, about the node of the token and about another one.
type probe struct {
	// rule is the rule of the scope that names it; empty if none does.
	rule string
	// verb and resource are the verb and the resource of the request.
	verb, resource string
	own            request
	// foreign is the same about another node; nil if the rule does not depend on the node.
	foreign *request
}

// prober makes the probes of one agent.
type prober struct {
	*world
	agent  *agent
	served map[[2]string]resource
	probes []probe
	// skipped are the rights whose resources API servers do not serve.
	skipped []string
}

// verbs are those that have a request.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// target says which object a request is about.
type target struct {
	namespace, name string
	// selector limits lists, watches and deletions of collections.
	selector string
}

// rules makes the probes of the rules of the scope.
func (p *prober) rules(ctx context.Context) error {
	spec := &p.agent.scope.Spec
	for i, r := range spec.NamedAsNode {
		named := listed{fmt.Sprintf("namedAsNode[%d]", i), r.APIGroups, r.Resources, r.Verbs}
		err := p.each(ctx, named, true, func(given right, _, node string) target {
			return target{namespaceOf(r.Namespaces, given, appNamespace), node, "metadata.name=" + node}
		})
		if err != nil {
			return err
		}
	}
	for i, r := range spec.SelectsNode {
		named := listed{fmt.Sprintf("selectsNode[%d]", i), r.APIGroups, r.Resources, r.Verbs}
		err := p.each(ctx, named, true, func(given right, _, node string) target {
			return target{namespaceOf(r.Namespaces, given, ""), "", r.Field + "=" + node}
		})
		if err != nil {
			return err
		}
	}
	for i, r := range spec.PodsOnNode {
		named := listed{fmt.Sprintf("podsOnNode[%d]", i), podGroups(&r), r.Resources, r.Verbs}
		err := p.each(ctx, named, true, func(given right, _, node string) target {
			if in := namespaceOf(r.Namespaces, given, appNamespace); in != appNamespace {
				return target{in, agentPod(p.agent.account.Name, node), ""}
			}
			return target{appNamespace, appPod(node), ""}
		})
		if err != nil {
			return err
		}
	}
	return p.anywhere(ctx)
}

// podGroups are the groups of a rule about pods, and about objects that are named like pods.
func podGroups(r *v1alpha1.PodRule) []string {
	if len(r.APIGroups) == 0 {
		return []string{""}
	}
	return r.APIGroups
}

func (p *prober) anywhere(ctx context.Context) error {
	for i, r := range p.agent.scope.Spec.Anywhere {
		named := listed{fmt.Sprintf("anywhere[%d]", i), r.APIGroups, r.Resources, r.Verbs}
		for _, path := range r.NonResourceURLs {
			p.probes = append(p.probes, probe{rule: named.rule, verb: "get", resource: path, own: get(strings.TrimSuffix(path, "*"))})
		}
		err := p.each(ctx, named, false, func(given right, resource, _ string) target {
			t := target{namespaceOf(r.Namespaces, given, ""), anyName(resource), ""}
			if listed := slices.Concat(r.ResourceNames, given.rule.ResourceNames); len(listed) > 0 {
				t.name, t.selector = listed[0], "metadata.name="+listed[0]
			}
			return t
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// anyName is the name of an object that does not belong to the node of the token.
func anyName(resource string) string {
	switch name, _, _ := strings.Cut(resource, "/"); name {
	case "pods":
		return appPod(nodeB)
	case "secrets", "configmaps":
		return "of-" + nodeB
	case "serviceaccounts":
		return "app"
	case "namespaces":
		return appNamespace
	}
	return nodeB
}

// namespaceOf returns the namespace of a request: from the rule, from the role, or another one.
func namespaceOf(rule []string, r right, otherwise string) string {
	switch {
	case r.namespace != "":
		return r.namespace
	case len(rule) > 0 && !slices.Contains(rule, appNamespace):
		return rule[0]
	}
	return otherwise
}

// listed has the values that a rule of a scope names.
type listed struct {
	rule                     string
	groups, resources, verbs []string
}

// each makes a probe of every group, resource and verb that a rule names and a right gives.
func (p *prober) each(ctx context.Context, l listed, foreign bool, about func(given right, resource, node string) target) error {
	for _, group := range p.expandGroups(l.groups) {
		for _, resource := range p.expandResources(group, l.resources) {
			for _, verb := range verbs {
				given, granted := p.agent.granted(group, resource, verb)
				if !names(l.verbs, verb) || !granted && slices.Contains(l.verbs, "*") {
					continue
				}
				if !granted {
					return fmt.Errorf("%s of %s: no role gives %s %s.%s", l.rule, p.agent.name, verb, resource, group)
				}
				of := func(node string) target { return about(given, resource, node) }
				if err := p.probe(ctx, l.rule, group, resource, verb, foreign, of); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *prober) probe(
	ctx context.Context, name, group, resource, verb string, foreign bool, about func(node string) target,
) error {
	main, _, _ := strings.Cut(resource, "/")
	r, ok := p.served[[2]string{group, main}]
	qualified := strings.TrimSuffix(resource+"."+group, ".")
	if !ok {
		if !slices.Contains(p.skipped, qualified) {
			p.skipped = append(p.skipped, qualified)
		}
		return nil
	}
	r.name = resource
	made := probe{rule: name, verb: verb, resource: qualified}
	var err error
	if made.own, err = p.request(ctx, r, verb, about(nodeA), nodeA); err != nil {
		return err
	}
	if foreign {
		other, err := p.request(ctx, r, verb, about(nodeB), nodeB)
		if err != nil {
			return err
		}
		made.foreign = &other
	}
	p.probes = append(p.probes, made)
	return nil
}

// request returns the HTTP request. Writes are tried without being stored.
func (p *prober) request(ctx context.Context, r resource, verb string, t target, node string) (request, error) {
	_, subresource, _ := strings.Cut(r.name, "/")
	collection := r.path(t.namespace)
	one := r.path(inNamespace(t.namespace)) + "/" + t.name
	if subresource != "" {
		one += "/" + subresource
	}
	query := func(path string, parameters ...string) string {
		if t.selector != "" {
			parameters = append(parameters, "fieldSelector="+strings.ReplaceAll(t.selector, "=", "%3D"))
		}
		return strings.TrimSuffix(path+"?"+strings.Join(parameters, "&"), "?")
	}
	const dry = "dryRun=All"
	switch verb {
	case "get":
		return get(one), nil
	case "list":
		return get(query(collection)), nil
	case "watch":
		return get(query(collection, "watch=true")), nil
	case "create":
		if subresource != "" {
			return post(one+"?"+dry, p.created(ctx, r, t, node)), nil
		}
		return post(r.path(inNamespace(t.namespace))+"?"+dry, p.created(ctx, r, t, node)), nil
	case "update":
		current, err := p.current(ctx, r, t, one)
		return put(one+"?"+dry, current), err
	case "patch":
		return patch(one+"?"+dry, object{"metadata": object{"annotations": object{"test": "1"}}}), nil
	case "delete":
		return remove(one + "?" + dry), nil
	case "deletecollection":
		return remove(query(r.path(inNamespace(t.namespace)), dry)), nil
	}
	return request{}, fmt.Errorf("there is no request for the verb %s", verb)
}

// inNamespace returns a namespace; without one, the namespace of the pods of users.
func inNamespace(name string) string {
	if name != "" {
		return name
	}
	return appNamespace
}

// current returns the stored object; if there is none, one that could be created with its name.
func (p *prober) current(ctx context.Context, r resource, t target, path string) (object, error) {
	a, err := p.admin.do(ctx, get(path))
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		r.name, _, _ = strings.Cut(r.name, "/")
		o := p.created(ctx, r, t, t.name)
		o["metadata"].(object)["name"] = t.name
		return o, nil
	}
	var o object
	return o, p.admin.must(ctx, get(path), &o)
}

// expandGroups replaces "*" by the groups of the account's roles.
func (p *prober) expandGroups(groups []string) []string {
	if !slices.Contains(groups, "*") {
		return groups
	}
	var all []string
	for _, r := range p.agent.rights {
		all = append(all, r.rule.APIGroups...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(g string) bool { return g == "*" })
}

// expandResources replaces "*" and pods/* by the resources of the account's roles.
func (p *prober) expandResources(group string, resources []string) []string {
	if !slices.ContainsFunc(resources, func(r string) bool { return strings.Contains(r, "*") }) {
		return resources
	}
	var all []string
	for _, r := range p.agent.rights {
		for _, given := range r.rule.Resources {
			if names(r.rule.APIGroups, group) && namesResource(resources, given) && !strings.Contains(given, "*") {
				all = append(all, given)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
