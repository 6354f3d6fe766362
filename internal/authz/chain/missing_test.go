package chain

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// MissingRoles lists bindings that apply to the request and whose role does not
// exist: not bindings of other users or in other namespaces, and not bindings whose role exists.
func TestMissingRoles(t *testing.T) {
	p := rbac.NewPolicy()
	nodes := []rbacv1.Subject{{Kind: "Group", Name: "system:nodes"}}
	bind := func(namespace, name, role string, subjects []rbacv1.Subject) {
		p.SetRoleBinding(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		})
	}
	p.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "there"}})
	bind("shop", "missing", "gone", nodes)
	bind("shop", "known", "there", nodes)
	bind("shop", "people", "gone", []rbacv1.Subject{{Kind: "User", Name: "ada"}})
	bind("other", "elsewhere", "gone", nodes)
	req := &access.Request{
		User: "system:node:a", Groups: []string{"system:nodes"}, Verb: "list", Version: "v1",
		Resource: "secrets", Namespace: "shop", ResourceRequest: true,
	}
	got := MissingRoles(p, req)
	if len(got) != 1 || got[0].Binding.Name != "missing" || got[0].Role.Name != "gone" {
		t.Errorf("got %v", got)
	}
	bind("shop", "allows", "lists", nodes)
	p.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "lists"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
	})
	if got := MissingRoles(p, req); got != nil {
		t.Errorf("of an allowed request: %v", got)
	}
}
