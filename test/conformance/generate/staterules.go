package generate

import (
	"math/rand/v2"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// grantVerbs are the verbs of the extra authorization checks, between others.
var grantVerbs = []string{
	"request-serviceaccounts-token-audience", "request-serviceaccounts-podcertificate-signer", "*", "create", "request-serviceaccounts",
}

// grants draws roles and bindings that give nodes some audiences and signers:
// all of them or some by name, for all service accounts or some, here and
// everywhere, to all nodes or one. Some bindings name roles that do not exist.
func grants(seed uint64, s *State) *Policy {
	r := source(seed, "grants")
	p := &Policy{}
	for i := range 3 {
		role := &rbacv1.ClusterRole{Rules: grantRules(r)}
		role.Name = policyNames[i]
		p.ClusterRoles = append(p.ClusterRoles, role)
	}
	for i := range r.IntN(4) {
		binding := &rbacv1.ClusterRoleBinding{RoleRef: roleRef(r), Subjects: grantees(r, s)}
		binding.Name = "b" + strconv.Itoa(i)
		p.ClusterRoleBindings = append(p.ClusterRoleBindings, binding)
	}
	for _, namespace := range s.Namespaces {
		role := &rbacv1.Role{Rules: grantRules(r)}
		role.Namespace, role.Name = namespace, policyNames[0]
		p.Roles = append(p.Roles, role)
		for i := range r.IntN(3) {
			binding := &rbacv1.RoleBinding{RoleRef: roleRef(r), Subjects: grantees(r, s)}
			binding.Namespace, binding.Name = namespace, "b"+strconv.Itoa(i)
			p.RoleBindings = append(p.RoleBindings, binding)
		}
	}
	return p
}

func grantRules(r *rand.Rand) []rbacv1.PolicyRule {
	var resources []string
	resources = append(resources, audiences...)
	for _, signer := range signers {
		resources = append(resources, signer, strings.ReplaceAll(signer, "/", ":"))
	}
	rules := make([]rbacv1.PolicyRule, 1+r.IntN(2))
	for i := range rules {
		rules[i].Verbs = some(r, grantVerbs, 45)
		rules[i].APIGroups = some(r, []string{"", "certificates.k8s.io", "*"}, 45)
		rules[i].Resources = some(r, resources, 20)
		if chance(r, 40) {
			rules[i].ResourceNames = some(r, accountNames, 40)
		}
	}
	return rules
}

func grantees(r *rand.Rand, s *State) []rbacv1.Subject {
	list := make([]rbacv1.Subject, 1+r.IntN(2))
	for i := range list {
		if chance(r, 50) {
			list[i] = rbacv1.Subject{
				APIGroup: rbacv1.GroupName, Kind: "Group",
				Name: pick(r, []string{"system:nodes", "system:authenticated", "devs"}),
			}
			continue
		}
		list[i] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:node:" + pick(r, s.NodeNames)}
	}
	return list
}
