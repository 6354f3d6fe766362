package rbac_test

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

func Example() {
	p := rbac.NewPolicy()
	p.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-reader"},
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		},
	})
	p.SetRoleBinding(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "readers"},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "pod-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "web"}},
	})

	req := access.Request{
		User:            "system:serviceaccount:shop:web",
		ResourceRequest: true,
		Verb:            "list",
		Resource:        "pods",
		Namespace:       "shop",
	}
	fmt.Println(p.Evaluate(&req).Grant)

	req.Verb = "delete"
	fmt.Println(p.Evaluate(&req).Allowed)
	for _, f := range p.Explain(&req) {
		fmt.Printf("%s comes nearest, but for its %s\n", f.Grant.Binding, f.Mismatch)
	}
	// Output:
	// rule 0 of ClusterRole "pod-reader", which RoleBinding "shop/readers" grants to ServiceAccount "shop/web"
	// false
	// RoleBinding "shop/readers" comes nearest, but for its verb
}
