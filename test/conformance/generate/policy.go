package generate

import (
	"math/rand/v2"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Policy is a set of RBAC roles and bindings.
type Policy struct {
	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
}

// The words of policies and of the questions about them: few, so that they
// meet, with wildcards in and out of place.
var (
	policyNames      = []string{"a", "aa", "a:b", "view", "edit", "admin"}
	policyNamespaces = []string{"a", "aa", "shop", "shop-1"}
	policyUsers      = []string{
		"alice", "alic", "system:node:node-1", "system:serviceaccount:a:view", "system:serviceaccount:aa:a:b",
		"system:serviceaccount:a:aa", "system:serviceaccount::a", "system:anonymous", "*", "",
	}
	policyGroups    = []string{"system:nodes", "system:authenticated", "system:serviceaccounts", "system:masters", "devs", "dev", "*", ""}
	policyVerbs     = []string{"get", "list", "watch", "create", "update", "*", "", "GET"}
	policyAPIGroups = []string{"", "apps", "app", "*", "resource.k8s.io"}
	policyResources = []string{
		"pods", "pods/log", "pods/*", "*/log", "*", "*/*", "pod", "secrets", "/log", "deployments", "deployments/scale", "*/scale", "",
	}
	policyObjects = []string{"db", "db-0", "d", "*", ""}
	policyURLs    = []string{"/healthz", "/healthz/*", "/api*", "*", "/", "/*", "", "/metrics"}
	policyPaths   = []string{"/healthz", "/healthz/", "/healthz/etcd", "/api", "/apis", "/", "/metrics", "*", "/healthz/*", "/x*"}
)

// NewPolicy generates roles and bindings, among them bindings to roles that do
// not exist and to subjects that no user can be.
func NewPolicy(seed uint64) *Policy {
	r := source(seed, "policy")
	p := &Policy{}
	for _, namespace := range policyNamespaces {
		for _, name := range some(r, policyNames, 85) {
			role := &rbacv1.Role{Rules: policyRules(r)}
			role.Namespace, role.Name = namespace, name
			p.Roles = append(p.Roles, role)
		}
		for i := range r.IntN(5) {
			binding := &rbacv1.RoleBinding{RoleRef: roleRef(r), Subjects: subjects(r)}
			binding.Namespace, binding.Name = namespace, "b"+strconv.Itoa(i)
			p.RoleBindings = append(p.RoleBindings, binding)
		}
	}
	for _, name := range some(r, policyNames, 85) {
		role := &rbacv1.ClusterRole{Rules: policyRules(r)}
		role.Name = name
		p.ClusterRoles = append(p.ClusterRoles, role)
	}
	for i := range r.IntN(4) {
		binding := &rbacv1.ClusterRoleBinding{RoleRef: roleRef(r), Subjects: subjects(r)}
		binding.Name = "b" + strconv.Itoa(i)
		p.ClusterRoleBindings = append(p.ClusterRoleBindings, binding)
	}
	return p
}

// some keeps each choice with probability percent/100.
func some(r *rand.Rand, choices []string, percent int) []string {
	var kept []string
	for _, choice := range choices {
		if chance(r, percent) {
			kept = append(kept, choice)
		}
	}
	return kept
}

func policyRules(r *rand.Rand) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, r.IntN(5))
	for i := range rules {
		rules[i].Verbs = some(r, policyVerbs, 35)
		if chance(r, 85) {
			rules[i].APIGroups = some(r, policyAPIGroups, 35)
			rules[i].Resources = some(r, policyResources, 20)
		}
		if chance(r, 35) {
			rules[i].ResourceNames = some(r, policyObjects, 30)
		}
		if chance(r, 25) {
			rules[i].NonResourceURLs = some(r, policyURLs, 30)
		}
	}
	return rules
}

func roleRef(r *rand.Rand) rbacv1.RoleRef {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: pick(r, []string{"ClusterRole", "Role"}), Name: pick(r, policyNames)}
	if chance(r, 10) {
		ref.APIGroup, ref.Kind = "", pick(r, []string{"role", "clusterrole", ""})
	}
	return ref
}

func subjects(r *rand.Rand) []rbacv1.Subject {
	list := make([]rbacv1.Subject, r.IntN(4))
	for i := range list {
		s := &list[i]
		s.Kind = pick(r, []string{"User", "Group", "ServiceAccount"})
		if chance(r, 5) {
			s.Kind = pick(r, []string{"user", "Users", ""})
		}
		switch s.Kind {
		case "Group":
			s.APIGroup, s.Name = rbacv1.GroupName, pick(r, policyGroups)
		case "ServiceAccount":
			s.Namespace, s.Name = pick(r, append([]string{""}, policyNamespaces...)), pick(r, policyNames)
		default:
			s.APIGroup, s.Name = rbacv1.GroupName, pick(r, policyUsers)
		}
	}
	return list
}
