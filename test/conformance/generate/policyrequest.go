package generate

import (
	"math/rand/v2"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Requests generates n questions about the policy: most of them follow one of
// its bindings and one of its rules, and go astray now and then.
func (p *Policy) Requests(seed uint64, n int) []Request {
	r := source(seed, "policy requests")
	requests := make([]Request, n)
	for i := range requests {
		requests[i] = anyPolicyRequest(r)
		if chance(r, 75) {
			p.follow(r, &requests[i])
		}
	}
	return requests
}

// anyPolicyRequest draws a question out of the words of policies.
func anyPolicyRequest(r *rand.Rand) Request {
	req := Request{User: pick(r, policyUsers), Groups: some(r, policyGroups, 20), Verb: pick(r, policyVerbs)}
	if chance(r, 15) {
		req.Path = pick(r, policyPaths)
		return req
	}
	req.Group, req.Resource = pick(r, policyAPIGroups), pick(r, []string{"pods", "secrets", "deployments", "pods/log", "*", ""})
	req.Subresource = pick(r, []string{"", "", "log", "scale", "*", "log/x"})
	req.Namespace, req.Name = pick(r, append([]string{"", "x"}, policyNamespaces...)), pick(r, policyObjects)
	return req
}

// follow turns the question into one that a binding may answer.
func (p *Policy) follow(r *rand.Rand, req *Request) {
	namespace, ref, subjects := p.binding(r)
	if len(subjects) == 0 {
		return
	}
	if namespace != "" && chance(r, 90) {
		req.Namespace = namespace
	}
	become(req, namespace, pick(r, subjects))
	if rules := p.rules(namespace, ref); len(rules) > 0 {
		obey(r, req, &rules[r.IntN(len(rules))])
	}
}

// binding draws a binding; a cluster role binding has no namespace.
func (p *Policy) binding(r *rand.Rand) (namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	n := len(p.RoleBindings) + len(p.ClusterRoleBindings)
	if n == 0 {
		return "", rbacv1.RoleRef{}, nil
	}
	i := r.IntN(n)
	if i < len(p.RoleBindings) {
		b := p.RoleBindings[i]
		return b.Namespace, b.RoleRef, b.Subjects
	}
	b := p.ClusterRoleBindings[i-len(p.RoleBindings)]
	return "", b.RoleRef, b.Subjects
}

// become makes the subject ask.
func become(req *Request, namespace string, s rbacv1.Subject) {
	switch s.Kind {
	case "Group":
		req.Groups = append(req.Groups, s.Name)
	case "ServiceAccount":
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		req.User = "system:serviceaccount:" + namespace + ":" + s.Name
	default:
		req.User = s.Name
	}
}

// rules returns the rules of the role that a binding names.
func (p *Policy) rules(namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	if ref.Kind == "Role" {
		i := slices.IndexFunc(p.Roles, func(role *rbacv1.Role) bool {
			return role.Namespace == namespace && role.Name == ref.Name
		})
		if i >= 0 {
			return p.Roles[i].Rules
		}
		return nil
	}
	i := slices.IndexFunc(p.ClusterRoles, func(role *rbacv1.ClusterRole) bool { return role.Name == ref.Name })
	if i >= 0 {
		return p.ClusterRoles[i].Rules
	}
	return nil
}

// obey changes the request to one that the rule seems to allow.
func obey(r *rand.Rand, req *Request, rule *rbacv1.PolicyRule) {
	if len(rule.Verbs) > 0 {
		req.Verb = pick(r, rule.Verbs)
	}
	if len(rule.NonResourceURLs) > 0 && (len(rule.Resources) == 0 || chance(r, 30)) {
		if url := pick(r, rule.NonResourceURLs); url != "" {
			req.Path = strings.TrimSuffix(url, "*") + pick(r, []string{"", "x", "/x"})
		}
		return
	}
	if len(rule.Resources) == 0 || len(rule.APIGroups) == 0 {
		return
	}
	req.Path, req.Group = "", pick(r, rule.APIGroups)
	req.Resource, req.Subresource, _ = strings.Cut(pick(r, rule.Resources), "/")
	if len(rule.ResourceNames) > 0 && chance(r, 90) {
		req.Name = pick(r, rule.ResourceNames)
	}
}
