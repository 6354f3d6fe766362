package containment

import (
	"context"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// nodeRights are the rights that the Node authorizer and NodeRestriction give a node about itself and its pods.
var nodeRights = []struct {
	group, resource string
	verbs           []string
	// about is nil if the right does not depend on the node.
	about func(node string) target
}{
	{"", "nodes", []string{"get", "update", "patch"}, named("")},
	{"", "nodes", []string{"list", "watch"}, named("")},
	{"", "nodes/status", []string{"update", "patch"}, named("")},
	{"", "pods", []string{"get", "delete"}, ofPod},
	{"", "pods", []string{"list", "watch"}, func(node string) target { return target{"", "", "spec.nodeName=" + node} }},
	{"", "pods/status", []string{"update", "patch"}, ofPod},
	{"", "pods/eviction", []string{"create"}, ofPod},
	{"", "secrets", []string{"get", "list", "watch"}, ofVolume},
	{"", "configmaps", []string{"get", "list", "watch"}, ofVolume},
	{"", "serviceaccounts/token", []string{"create"}, func(string) target { return target{appNamespace, "app", ""} }},
	{"coordination.k8s.io", "leases", []string{"get", "create", "update", "patch", "delete"}, named("kube-node-lease")},
	{"", "endpoints", []string{"get"}, nil},
	{"", "services", []string{"get", "list", "watch"}, nil},
	{"storage.k8s.io", "csidrivers", []string{"get", "list", "watch"}, nil},
	{"authentication.k8s.io", "tokenreviews", []string{"create"}, nil},
	{"authorization.k8s.io", "subjectaccessreviews", []string{"create"}, nil},
	{"", "events", []string{"create", "update", "patch"}, nil},
	{"events.k8s.io", "events", []string{"create", "update", "patch"}, nil},
	{"storage.k8s.io", "csinodes", []string{"get", "create", "update", "patch", "delete"}, named("")},
}

func named(namespace string) func(node string) target {
	return func(node string) target { return target{namespace, node, "metadata.name=" + node} }
}

func ofPod(node string) target { return target{appNamespace, appPod(node), ""} }

func ofVolume(node string) target {
	return target{appNamespace, "of-" + node, "metadata.name=of-" + node}
}

// asNode makes the probes of requests that the node itself may make and no other rule names.
func (p *prober) asNode(ctx context.Context) error {
	if !p.agent.scope.Spec.AsNode {
		return nil
	}
	for _, r := range nodeRights {
		for _, verb := range r.verbs {
			given, granted := p.agent.granted(r.group, r.resource, verb)
			if !granted || given.namespace != "" || len(given.rule.ResourceNames) > 0 || p.named(r.group, r.resource, verb, false) {
				continue
			}
			about := r.about
			if about == nil {
				about = func(string) target { return target{"", anyName(r.resource), ""} }
			}
			if err := p.probe(ctx, "asNode", r.group, r.resource, verb, r.about != nil, about); err != nil {
				return err
			}
		}
	}
	return nil
}

// unnamed makes the probes of the rights that no rule names.
func (p *prober) unnamed(ctx context.Context) error {
	for _, given := range p.agent.rights {
		for _, group := range given.rule.APIGroups {
			for _, resource := range given.rule.Resources {
				for _, verb := range verbs {
					if strings.Contains(group+resource, "*") || !names(given.rule.Verbs, verb) || p.named(group, resource, verb, true) ||
						p.agent.scope.Spec.AsNode && isNodeRight(group, resource, verb) || p.made(group, resource, verb) {
						continue
					}
					about := func(string) target {
						t := target{given.namespace, anyName(resource), ""}
						if len(given.rule.ResourceNames) > 0 {
							t.name, t.selector = given.rule.ResourceNames[0], "metadata.name="+given.rule.ResourceNames[0]
						}
						return t
					}
					if err := p.probe(ctx, "", group, resource, verb, false, about); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// made reports whether there is a probe of a right already, which several roles give.
func (p *prober) made(group, resource, verb string) bool {
	qualified := strings.TrimSuffix(resource+"."+group, ".")
	return slices.ContainsFunc(p.probes, func(made probe) bool {
		return made.rule == "" && made.resource == qualified && made.verb == verb
	})
}

func isNodeRight(group, resource, verb string) bool {
	for _, r := range nodeRights {
		if r.group == group && r.resource == resource && slices.Contains(r.verbs, verb) {
			return true
		}
	}
	return false
}

// named reports whether a rule of the scope names a right. Rules about objects with certain names count if limited
// is true.
func (p *prober) named(group, resource, verb string, limited bool) bool {
	spec := &p.agent.scope.Spec
	matches := func(groups, resources, verbs []string) bool {
		return names(groups, group) && namesResource(resources, resource) && names(verbs, verb)
	}
	return slices.ContainsFunc(spec.NamedAsNode, func(r v1alpha1.NamedRule) bool { return matches(r.APIGroups, r.Resources, r.Verbs) }) ||
		slices.ContainsFunc(spec.SelectsNode, func(r v1alpha1.SelectedRule) bool { return matches(r.APIGroups, r.Resources, r.Verbs) }) ||
		slices.ContainsFunc(spec.PodsOnNode, func(r v1alpha1.PodRule) bool { return matches(podGroups(&r), r.Resources, r.Verbs) }) ||
		slices.ContainsFunc(spec.Anywhere, func(r v1alpha1.AnywhereRule) bool {
			return matches(r.APIGroups, r.Resources, r.Verbs) && (limited || len(r.ResourceNames) == 0)
		})
}
