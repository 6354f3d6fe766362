package rbac_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

func TestRolesAndBindingsAreListedInOrder(t *testing.T) {
	p := rbac.NewPolicy(rbac.ComputeAggregation())
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
	p.SetRole(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reader"}, Rules: rules})
	p.SetClusterRole(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"part": "yes"}}, Rules: rules},
	)
	p.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"part": "yes"}}},
		},
	})
	p.SetRoleBinding(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "web"}},
	})
	p.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "c"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "gone"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}},
	})

	var roles []string
	for _, r := range p.Roles() {
		roles = append(roles, fmt.Sprintf("%s: %d rules, %v", r.Role, len(r.Rules), r.Err))
	}
	if want := []string{
		`ClusterRole "all": 1 rules, <nil>`, `ClusterRole "part": 1 rules, <nil>`, `Role "shop/reader": 1 rules, <nil>`,
	}; !slices.Equal(roles, want) {
		t.Errorf("roles are %q, want %q", roles, want)
	}
	var bindings []string
	for _, b := range p.Bindings() {
		bindings = append(
			bindings,
			fmt.Sprintf("%s: %s to %s %s", b.Binding, b.Role, b.Subjects[0].Kind, b.Subjects[0].Namespace+"/"+b.Subjects[0].Name),
		)
	}
	if want := []string{
		`ClusterRoleBinding "c": ClusterRole "gone" to User /alice`, `RoleBinding "shop/b": Role "shop/reader" to ServiceAccount shop/web`,
	}; !slices.Equal(bindings, want) {
		t.Errorf("bindings are %q, want %q", bindings, want)
	}
}
