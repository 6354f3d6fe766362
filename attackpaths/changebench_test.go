package attackpaths_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// withDangerousDaemonSets adds DaemonSets with pods on each node: two that are cluster-admin, one that
// reads all secrets, one that creates pods, and one that may bind roles.
func withDangerousDaemonSets(c *attackpaths.Cluster, nodes int) *attackpaths.Cluster {
	const namespace = "kube-system"
	c.Inventory.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	rbac := []string{"rbac.authorization.k8s.io"}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"cluster-admin": {{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		"root":          {{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		"reader":        {{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"secrets", "pods"}}},
		"runner":        {{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
		"binder": {
			{Verbs: []string{"bind"}, APIGroups: rbac, Resources: []string{"clusterroles"}},
			{Verbs: []string{"create"}, APIGroups: rbac, Resources: []string{"clusterrolebindings"}},
		},
	} {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		c.Inventory.Set(&corev1.ServiceAccount{ObjectMeta: meta})
		c.RBAC.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
		c.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
		})
		for i := range nodes {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, i),
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, Controller: new(true),
					}},
				},
				Spec: corev1.PodSpec{
					NodeName: fmt.Sprint("node-", i), ServiceAccountName: name, Containers: []corev1.Container{{Name: "c"}},
					Volumes: []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}},
					}}}},
				},
			}
			c.Inventory.Set(p)
			c.Relations.SetPod(p)
		}
	}
	c.Inventory.Set(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "root-token", Annotations: map[string]string{"kubernetes.io/service-account.name": "root"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	})
	return c
}

func BenchmarkWhatToChange(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		c := withDangerousDaemonSets(large(nodes), nodes)
		b.Run(fmt.Sprint(nodes, "_nodes"), func(b *testing.B) {
			for b.Loop() {
				advice, err := attackpaths.WhatToChange(c, attackpaths.AdviceOptions{})
				if err != nil || advice.Nodes.Certain != nodes || advice.Left.Certain != 0 {
					b.Fatalf("advice %+v, %v", advice, err)
				}
				b.ReportMetric(float64(len(advice.Alone)), "alone")
				b.ReportMetric(float64(len(advice.Set)), "set")
			}
		})
	}
}
