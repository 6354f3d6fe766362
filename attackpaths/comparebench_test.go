//go:build unix

package attackpaths_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Changes that widen for all nodes, for some, and for none, against one evaluation of all nodes: making
// the graph and AllNodes. Both are measured in turns, in processor time.
func BenchmarkCompare(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		for name, subject := range map[string]rbacv1.Subject{
			"all":  {Kind: "Group", Name: "system:nodes"},
			"some": {Kind: "ServiceAccount", Namespace: "team-1", Name: "app-1"},
			"none": {Kind: "User", Name: "nobody"},
		} {
			b.Run(fmt.Sprint(name, "_of_", nodes, "_nodes"), func(b *testing.B) {
				c := large(nodes)
				var whole, evaluation, compare time.Duration
				for b.Loop() {
					c.RBAC.DeleteClusterRoleBinding("reads-secrets")
					began := processorTime(b)
					before := benchGraph(b, c)
					graph := processorTime(b)
					before.AllNodes()
					all := processorTime(b)
					bindTo(c, subject)
					bound := processorTime(b)
					after := benchGraph(b, c)
					made := processorTime(b)
					attackpaths.Compare(before, after, attackpaths.CompareOptions{})
					end := processorTime(b)
					evaluation += all - began
					compare += end - made
					whole += graph - began + end - bound
				}
				b.ReportMetric(float64(whole)/float64(evaluation), "evaluations/op")
				b.ReportMetric(float64(compare.Milliseconds())/float64(b.N), "compare-ms/op")
			})
		}
	}
}

func benchGraph(b *testing.B, c *attackpaths.Cluster) *attackpaths.Graph {
	b.Helper()
	g, err := attackpaths.New(c)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// processorTime is that of this process, garbage collection included.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
