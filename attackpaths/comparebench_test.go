package attackpaths_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Changes that widen for all nodes, and for a few.
func BenchmarkCompare(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		for name, subject := range map[string]rbacv1.Subject{
			"all":  {Kind: "Group", Name: "system:nodes"},
			"some": {Kind: "ServiceAccount", Namespace: "team-1", Name: "app-1"},
		} {
			b.Run(fmt.Sprint(name, "_of_", nodes, "_nodes"), func(b *testing.B) {
				c := large(nodes)
				before, err := attackpaths.New(c)
				if err != nil {
					b.Fatal(err)
				}
				bindTo(c, subject)
				after, err := attackpaths.New(c)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					attackpaths.Compare(before, after, attackpaths.CompareOptions{})
				}
			})
		}
	}
}

// bindTo lets a subject read all secrets.
func bindTo(c *attackpaths.Cluster, s rbacv1.Subject) {
	meta := metav1.ObjectMeta{Name: "reads-secrets"}
	c.RBAC.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
	}})
	c.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: meta.Name}, Subjects: []rbacv1.Subject{s},
	})
}
