package cli

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// filter restricts a result to some resources and one namespace.
type filter struct {
	resources []resources.Resource
	namespace string
}

func (s *session) newFilter(kinds []string, namespace string) (filter, error) {
	f := filter{namespace: namespace}
	for _, kind := range kinds {
		found, err := s.names.Resolve(kind)
		if err != nil {
			return f, err
		}
		f.resources = append(f.resources, found.Resource)
	}
	return f, nil
}

func (f filter) narrows() bool { return len(f.resources) > 0 || f.namespace != "" }

func (f filter) resource(group, name string) bool {
	return len(f.resources) == 0 || slices.ContainsFunc(f.resources, func(r resources.Resource) bool {
		return r.Group == group && r.Name == name
	})
}

func (f filter) object(g nodeauthz.Grant) bool {
	return f.resource(g.Group, g.Resource) && (f.namespace == "" || g.Namespace == f.namespace)
}

// keepsStanding reports whether a standing grant passes the filter. A grant for all namespaces
// passes the filter for one.
func (s *session) keepsStanding(f filter, g nodeauthz.Grant) bool {
	switch {
	case !f.resource(g.Group, g.Resource):
		return false
	case f.namespace == "":
		return true
	case g.Namespace != "":
		return g.Namespace == f.namespace
	}
	found, err := s.names.Resolve(resources.Resource{Group: g.Group, Name: g.Resource}.String())
	return err == nil && found.Namespaced
}

// rule reports whether an RBAC rule passes the filter. A rule for all namespaces passes the
// filter for one. A rule for URLs has no resource and no namespace.
func (f filter) rule(g rbac.Grant) bool {
	if !f.narrows() {
		return true
	}
	if len(g.Rule.Resources) == 0 {
		return false
	}
	if f.namespace != "" && g.Binding.Namespace != "" && g.Binding.Namespace != f.namespace {
		return false
	}
	return len(f.resources) == 0 || slices.ContainsFunc(f.resources, func(r resources.Resource) bool {
		return covers(g.Rule, r)
	})
}

func covers(rule *rbacv1.PolicyRule, r resources.Resource) bool {
	inGroup := slices.ContainsFunc(rule.APIGroups, func(group string) bool {
		return group == r.Group || group == rbacv1.APIGroupAll
	})
	return inGroup && slices.ContainsFunc(rule.Resources, func(name string) bool {
		base, _, _ := strings.Cut(name, "/")
		return base == r.Name || base == rbacv1.ResourceAll
	})
}
