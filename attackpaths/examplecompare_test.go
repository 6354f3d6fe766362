package attackpaths_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// A binding lets all nodes read a secret.
func ExampleCompare() {
	cluster := &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(), Features: kubeversion.For(kubeversion.Latest),
	}
	for _, name := range []string{"web-1", "web-2"} {
		cluster.Inventory.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	cluster.Inventory.Set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}})
	cluster.RBAC.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
	})
	before, err := attackpaths.New(cluster)
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:nodes"}},
	})
	after, err := attackpaths.New(cluster)
	if err != nil {
		fmt.Println(err)
		return
	}
	compared := attackpaths.Compare(before, after, attackpaths.CompareOptions{})
	for _, d := range compared.Widened {
		fmt.Printf("%d nodes → %s: %s → %s, because of %s\n", len(d.Starts), d.Reached[0], d.Before, d.After, d.Path[0].GrantedBy)
	}
	fmt.Println(len(compared.Narrowed), "narrowed")
	// Output:
	// 2 nodes → secret shop/db: No → Certain, because of ClusterRoleBinding "nodes"
	// 0 narrowed
}
