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

// The agent on node web-1 may do everything.
func ExampleWhatToChange() {
	cluster := &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(), Features: kubeversion.For(kubeversion.Latest),
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "agent"},
		Spec: corev1.PodSpec{
			NodeName: "web-1", ServiceAccountName: "agent",
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
			}}}},
		},
	}
	cluster.Inventory.Set(pod)
	cluster.Relations.SetPod(pod)
	cluster.RBAC.SetClusterRole(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	})
	cluster.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "monitoring", Name: "agent"}},
	})

	advice, err := attackpaths.WhatToChange(cluster, attackpaths.AdviceOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range advice.Alone {
		fmt.Println(change.Certain, "node:", change)
	}
	fmt.Println("set:", advice.Set[0])
	// Output:
	// 1 node: remove the subjects of ClusterRoleBinding "agent"
	// 1 node: do not mount a service account token into Pod "monitoring/agent"
	// set: remove the subjects of ClusterRoleBinding "agent"
}
