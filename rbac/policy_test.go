package rbac_test

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Builders of objects, so that a table row reads like a manifest.

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func allow(verb, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: meta(namespace, name), Rules: rules}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: meta("", name), Rules: rules}
}

func roleBinding(namespace, name, roleKind, roleName string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: meta(namespace, name), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: roleName},
	}
}

func clusterRoleBinding(name, roleName string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta("", name), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
	}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: name}
}

func serviceAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}

// policy returns a policy with the given objects, set in this order.
func policy(t testing.TB, objects ...any) *rbac.Policy {
	t.Helper()
	return fill(t, rbac.NewPolicy(), objects...)
}

func fill(t testing.TB, p *rbac.Policy, objects ...any) *rbac.Policy {
	t.Helper()
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.Role:
			p.SetRole(o)
		case *rbacv1.ClusterRole:
			p.SetClusterRole(o)
		case *rbacv1.RoleBinding:
			p.SetRoleBinding(o)
		case *rbacv1.ClusterRoleBinding:
			p.SetClusterRoleBinding(o)
		default:
			t.Fatalf("no such object: %T", object)
		}
	}
	return p
}

// getPod returns a request of ann, who is in the group dev, for a pod of shop.
var getPod = access.Request{
	User: "ann", Groups: []string{"dev", "system:authenticated"},
	ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "shop", Name: "web",
}

func TestSubjects(t *testing.T) {
	as := func(user string, groups ...string) access.Request {
		req := getPod
		req.User, req.Groups = user, groups
		return req
	}
	const web = "system:serviceaccount:shop:web"
	inBinding := func(s rbacv1.Subject) any { return roleBinding("shop", "b", "ClusterRole", "r", s) }
	inClusterBinding := func(s rbacv1.Subject) any { return clusterRoleBinding("b", "r", s) }

	tests := []struct {
		name    string
		binding any
		req     access.Request
		want    bool
	}{
		{"a user by name", inBinding(user("ann")), as("ann"), true},
		{"no other user", inBinding(user("ann")), as("bob"), false},
		{"* is not a wildcard for users", inBinding(user("*")), as("ann"), false},
		{"a group by name", inBinding(group("dev")), as("ann", "ops", "dev"), true},
		{"a group is not the user of that name", inBinding(group("ann")), as("ann"), false},
		{"a user is not the group of that name", inBinding(user("dev")), as("ann", "dev"), false},
		{"a service account by its namespace", inBinding(serviceAccount("shop", "web")), as(web), true},
		{"a service account of another namespace", inBinding(serviceAccount("bank", "web")), as("system:serviceaccount:bank:web"), true},
		{"a service account without namespace has the binding's", inBinding(serviceAccount("", "web")), as(web), true},
		{"and of no other", inBinding(serviceAccount("", "web")), as("system:serviceaccount:bank:web"), false},
		{"a service account in a cluster role binding", inClusterBinding(serviceAccount("shop", "web")), as(web), true},
		{"a namespace is required there", inClusterBinding(serviceAccount("", "web")), as(web), false},
		{"the empty namespace does not count", inClusterBinding(serviceAccount("", "web")), as("system:serviceaccount::web"), false},
		{"a user may have the name of a service account", inBinding(user(web)), as(web), true},
		{"an unknown kind matches no user", inBinding(rbacv1.Subject{Kind: "Robot", Name: "ann"}), as("ann"), false},
		{"the API group is ignored", inBinding(rbacv1.Subject{APIGroup: "example.com", Kind: "User", Name: "ann"}), as("ann"), true},
		{"system:masters is not special", inBinding(user("ann")), as("root", "system:masters"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := policy(t, clusterRole("r", allow("get", "pods")), tt.binding)
			if got := p.Evaluate(&tt.req); got.Allowed != tt.want {
				t.Errorf("allowed = %v", got.Allowed)
			}
		})
	}
}

func TestScope(t *testing.T) {
	in := func(namespace string) access.Request {
		req := getPod
		req.Namespace = namespace
		return req
	}
	getPods := allow("get", "pods")
	tests := []struct {
		name    string
		objects []any
		req     access.Request
		want    bool
	}{
		{
			"a role binding holds in its namespace",
			[]any{role("shop", "r", getPods), roleBinding("shop", "b", "Role", "r", user("ann"))},
			in("shop"), true,
		},
		{
			"and in no other",
			[]any{role("shop", "r", getPods), roleBinding("shop", "b", "Role", "r", user("ann"))},
			in("bank"), false,
		},
		{
			"and not across namespaces",
			[]any{role("shop", "r", getPods), roleBinding("shop", "b", "Role", "r", user("ann"))},
			in(""), false,
		},
		{
			"a role is of the binding's namespace",
			[]any{role("bank", "r", getPods), roleBinding("shop", "b", "Role", "r", user("ann"))},
			in("shop"), false,
		},
		{
			"a role binding may give a cluster role",
			[]any{clusterRole("r", getPods), roleBinding("shop", "b", "ClusterRole", "r", user("ann"))},
			in("shop"), true,
		},
		{
			"which then holds in the namespace only",
			[]any{clusterRole("r", getPods), roleBinding("shop", "b", "ClusterRole", "r", user("ann"))},
			in("bank"), false,
		},
		{
			"a role is not a cluster role of that name",
			[]any{clusterRole("r", getPods), roleBinding("shop", "b", "Role", "r", user("ann"))},
			in("shop"), false,
		},
		{
			"a cluster role binding holds everywhere",
			[]any{clusterRole("r", getPods), clusterRoleBinding("b", "r", user("ann"))},
			in("shop"), true,
		},
		{
			"and across namespaces",
			[]any{clusterRole("r", getPods), clusterRoleBinding("b", "r", user("ann"))},
			in(""), true,
		},
		{
			"a cluster role binding cannot give a role",
			[]any{role("", "r", getPods), &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta("", "b"),
				Subjects:   []rbacv1.Subject{user("ann")}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"},
			}},
			in("shop"), false,
		},
		{
			"a role binding without namespace holds nowhere",
			[]any{clusterRole("r", getPods), roleBinding("", "b", "ClusterRole", "r", user("ann"))},
			in(""), false,
		},
		{
			"and does not replace a cluster role binding",
			[]any{clusterRole("r", getPods), clusterRoleBinding("b", "r", user("ann")), roleBinding("", "b", "ClusterRole", "x")},
			in(""), true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy(t, tt.objects...).Evaluate(&tt.req); got.Allowed != tt.want {
				t.Errorf("allowed = %v", got.Allowed)
			}
		})
	}
}

func TestDecisionNamesWhatAllowed(t *testing.T) {
	p := policy(t,
		clusterRole("reader", allow("list", "pods"), allow("get", "pods")),
		role("shop", "reader", allow("get", "pods")),
		roleBinding("shop", "a", "Role", "reader", user("ann")),
		clusterRoleBinding("z", "reader", user("bob"), group("dev"), user("ann")),
		clusterRoleBinding("gone", "missing", user("ann")),
	)
	got := p.Evaluate(&getPod)
	if !got.Allowed || got.Unresolved != nil {
		t.Fatalf("decision = %+v", got)
	}
	// Cluster role bindings come before role bindings, for any names, and the first
	// subject of the binding that applies is the one named.
	want := `rule 1 of ClusterRole "reader", which ClusterRoleBinding "z" grants to Group "dev"`
	if got.Grant.String() != want {
		t.Errorf("grant = %s\nwant    %s", got.Grant, want)
	}
	if got.Grant.Rule == nil || got.Grant.Rule.Verbs[0] != "get" {
		t.Errorf("rule = %v", got.Grant.Rule)
	}
	p.DeleteClusterRoleBinding("z")
	want = `rule 0 of Role "shop/reader", which RoleBinding "shop/a" grants to User "ann"`
	if got := p.Evaluate(&getPod).Grant.String(); got != want {
		t.Errorf("grant = %s\nwant    %s", got, want)
	}
}

func TestDecisionGivesServiceAccountItsNamespace(t *testing.T) {
	p := policy(t, role("shop", "r", allow("get", "pods")), roleBinding("shop", "b", "Role", "r", serviceAccount("", "web")))
	req := getPod
	req.User = "system:serviceaccount:shop:web"
	if got := p.Evaluate(&req).Grant.Subject; got != serviceAccount("shop", "web") {
		t.Errorf("subject = %+v", got)
	}
}

func TestUnresolvedBindingGrantsNothingAndIsReported(t *testing.T) {
	p := policy(t,
		roleBinding("shop", "b", "Role", "missing", user("ann"), group("dev")),
		clusterRoleBinding("c", "missing", group("dev")),
		clusterRoleBinding("other", "missing", user("bob")),
		roleBinding("shop", "d", "Cabal", "x", user("ann")),
	)
	got := p.Evaluate(&getPod)
	if got.Allowed {
		t.Fatal("allowed")
	}
	want := []string{
		`ClusterRoleBinding "c" to ClusterRole "missing": role not found`,
		`RoleBinding "shop/b" to Role "shop/missing": role not found`,
		`RoleBinding "shop/d" to Cabal "x": a role of kind "Cabal" is not supported`,
	}
	if len(got.Unresolved) != len(want) {
		t.Fatalf("unresolved = %v", got.Unresolved)
	}
	for i, u := range got.Unresolved {
		if u.Error() != want[i] {
			t.Errorf("unresolved %d = %s\nwant %s", i, u, want[i])
		}
		if notFound := errors.Is(u, rbac.ErrRoleNotFound); notFound != (i < 2) {
			t.Errorf("unresolved %d: is ErrRoleNotFound = %v", i, notFound)
		}
	}
}

func TestPolicyFollowsChanges(t *testing.T) {
	p := policy(t)
	step := func(what string, want bool, change func()) {
		t.Helper()
		change()
		if got := p.Evaluate(&getPod).Allowed; got != want {
			t.Fatalf("%s: allowed = %v", what, got)
		}
	}
	getPods, listPods := allow("get", "pods"), allow("list", "pods")
	step("binding before role", false, func() { p.SetRoleBinding(roleBinding("shop", "b", "Role", "r", user("ann"))) })
	step("role arrives", true, func() { p.SetRole(role("shop", "r", getPods)) })
	step("role changes", false, func() { p.SetRole(role("shop", "r", listPods)) })
	step("role changes back", true, func() { p.SetRole(role("shop", "r", getPods)) })
	step("role goes", false, func() { p.DeleteRole("shop", "r") })
	step("role returns", true, func() { p.SetRole(role("shop", "r", getPods)) })
	step("subject changes", false, func() { p.SetRoleBinding(roleBinding("shop", "b", "Role", "r", user("bob"))) })
	step("subjects change", true, func() {
		p.SetRoleBinding(roleBinding("shop", "b", "Role", "r", user("bob"), user("ann"), user("ann")))
	})
	step("binding of another namespace goes", true, func() { p.DeleteRoleBinding("bank", "b") })
	step("binding without namespace goes", true, func() { p.DeleteRoleBinding("", "b") })
	step("binding goes", false, func() { p.DeleteRoleBinding("shop", "b") })
	step("binding goes again", false, func() { p.DeleteRoleBinding("shop", "b") })
	step("cluster role binding", true, func() {
		p.SetClusterRole(clusterRole("r", getPods))
		p.SetClusterRoleBinding(clusterRoleBinding("b", "r", user("ann")))
	})
	step("cluster role goes", false, func() { p.DeleteClusterRole("r") })
}
