package command

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Filter restricts a result to some resources and one namespace.
type Filter struct {
	Resources []resources.Resource
	Namespace string
}

// NewFilter resolves kinds as people write them. It returns an error for unknown ones.
func (s *Session) NewFilter(kinds []string, namespace string) (Filter, error) {
	f := Filter{Namespace: namespace}
	for _, kind := range kinds {
		found, err := s.Names.Resolve(kind)
		if err != nil {
			return f, err
		}
		f.Resources = append(f.Resources, found.Resource)
	}
	return f, nil
}

// Narrows reports whether the filter leaves anything out.
func (f Filter) Narrows() bool { return len(f.Resources) > 0 || f.Namespace != "" }

func (f Filter) resource(group, name string) bool {
	return len(f.Resources) == 0 || slices.ContainsFunc(f.Resources, func(r resources.Resource) bool {
		return r.Group == group && r.Name == name
	})
}

// Object reports whether the filter keeps an object.
func (f Filter) Object(g nodeauthz.Grant) bool {
	return f.resource(g.Group, g.Resource) && (f.Namespace == "" || g.Namespace == f.Namespace)
}

// KeepsStanding reports whether a standing grant passes the filter. A grant for all namespaces
// passes the filter for one.
func (s *Session) KeepsStanding(f Filter, g nodeauthz.Grant) bool {
	switch {
	case !f.resource(g.Group, g.Resource):
		return false
	case f.Namespace == "":
		return true
	case g.Namespace != "":
		return g.Namespace == f.Namespace
	}
	found, err := s.Names.Resolve(resources.Resource{Group: g.Group, Name: g.Resource}.String())
	return err == nil && found.Namespaced
}

// Rule reports whether an RBAC rule passes the filter. A rule for all namespaces passes the
// filter for one. A rule for URLs has no resource and no namespace.
func (f Filter) Rule(g rbac.Grant) bool {
	if !f.Narrows() {
		return true
	}
	if len(g.Rule.Resources) == 0 {
		return false
	}
	if f.Namespace != "" && g.Binding.Namespace != "" && g.Binding.Namespace != f.Namespace {
		return false
	}
	return len(f.Resources) == 0 || slices.ContainsFunc(f.Resources, func(r resources.Resource) bool {
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
