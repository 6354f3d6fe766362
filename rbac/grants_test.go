package rbac

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGrantsAreThoseOfAllNamespaces(t *testing.T) {
	p := NewPolicy()
	p.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}},
		},
	})
	reader := rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"}
	nodes := []rbacv1.Subject{{Kind: "Group", Name: "system:nodes"}, {Kind: "User", Name: "system:node:a"}}
	p.SetRoleBinding(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}, RoleRef: reader, Subjects: nodes})
	p.SetRoleBinding(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "y"}, RoleRef: reader, Subjects: nodes})
	p.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "z"}, RoleRef: reader, Subjects: nodes[:1]})
	p.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lost"},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "gone"}, Subjects: nodes[:1],
	})

	grants, err := p.Grants("system:node:a", []string{"system:nodes"})
	if !errors.Is(err, ErrRoleNotFound) {
		t.Errorf("err = %v, want the unresolved binding", err)
	}
	want := []string{
		`rule 0 of ClusterRole "reader", which ClusterRoleBinding "z" grants to Group "system:nodes"`,
		`rule 1 of ClusterRole "reader", which ClusterRoleBinding "z" grants to Group "system:nodes"`,
		`rule 0 of ClusterRole "reader", which RoleBinding "blog/y" grants to Group "system:nodes"`,
		`rule 1 of ClusterRole "reader", which RoleBinding "blog/y" grants to Group "system:nodes"`,
		`rule 0 of ClusterRole "reader", which RoleBinding "shop/x" grants to Group "system:nodes"`,
		`rule 1 of ClusterRole "reader", which RoleBinding "shop/x" grants to Group "system:nodes"`,
	}
	if len(grants) != len(want) {
		t.Fatalf("got %d grants, want %d", len(grants), len(want))
	}
	for i := range want {
		if got := grants[i].String(); got != want[i] {
			t.Errorf("grant %d\n got %s\nwant %s", i, got, want[i])
		}
	}
}
