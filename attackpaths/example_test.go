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

// The agent on node web-1 may read every secret.
func Example() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "agent-x"},
		Spec: corev1.PodSpec{
			NodeName: "web-1", ServiceAccountName: "agent",
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
			}}}},
		},
	}
	cluster := &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(), Features: kubeversion.For(kubeversion.Latest),
	}
	cluster.Inventory.Set(pod)
	cluster.Relations.SetPod(pod)
	cluster.Inventory.Set(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}})
	cluster.RBAC.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
	})
	cluster.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "monitoring", Name: "agent"}},
	})

	paths, err := attackpaths.New(cluster)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := paths.From(attackpaths.Holding{Kind: attackpaths.Node, Name: "web-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("cluster-admin:", result.ClusterAdmin)
	for _, step := range result.Reached[1].Path {
		fmt.Printf("%s: %s → %s\n", step.Technique, step.From, step.To)
	}
	// Output:
	// cluster-admin: No
	// PodTokenOnNode: node web-1 → serviceaccount monitoring/agent
	// SecretRead: serviceaccount monitoring/agent → secret shop/db
}
