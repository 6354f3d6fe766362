package doctor

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// pathsOf is the input of the check about attack paths for a cluster of objects.
func pathsOf(t *testing.T, objects ...any) *Paths {
	t.Helper()
	c := &attackpaths.Cluster{
		Inventory: inventory.New(), Relations: graph.New(), RBAC: rbac.NewPolicy(), Features: kubeversion.For(kubeversion.Latest),
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Pod:
			c.Inventory.Set(o)
			c.Relations.SetPod(o)
		case *corev1.Node:
			c.Inventory.Set(o)
		case *corev1.ServiceAccount:
			c.Inventory.Set(o)
		case *rbacv1.ClusterRole:
			c.RBAC.SetClusterRole(o)
		case *rbacv1.ClusterRoleBinding:
			c.RBAC.SetClusterRoleBinding(o)
		default:
			t.Fatalf("no place for a %T", object)
		}
	}
	g, err := attackpaths.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &Paths{Graph: g, Nodes: len(c.Inventory.Nodes())}
}

// noPaths is the input without objects.
func noPaths(t *testing.T) *Paths { return pathsOf(t) }

// tokenPod is a pod with a token; of a DaemonSet if that is named.
func tokenPod(name, node, account, daemonSet string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "c"}},
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
			}}}},
		},
	}
	if daemonSet != "" {
		controller := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: daemonSet, Controller: &controller}}
	}
	return p
}

func TestAttackPathsOfNodes(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: named(name)} }
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}}
	role := func(rules ...rbacv1.PolicyRule) []any {
		return []any{
			&rbacv1.ClusterRole{ObjectMeta: named("agent"), Rules: rules},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: named("agent"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agent"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: "agent"}},
			},
		}
	}
	everything := role(rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	webhooks := role(rbacv1.PolicyRule{
		Verbs: []string{
			"create",
		}, APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"},
	})
	etcd := tokenPod("etcd-n1", "n1", "", "")
	etcd.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	nodes := []any{node("n1"), node("n2"), account}
	for _, test := range []struct {
		rule    string
		objects [][]any
		want    []string
	}{
		{
			rule:    "a pod's account that is cluster-admin",
			objects: [][]any{nodes, everything, {tokenPod("p", "n1", "agent", "")}},
			want: []string{`error: Node n1: 1 of 2 nodes leads to cluster-admin: who takes over such a machine owns the cluster; ` +
				`the path from n1: ` +
				`node n1 → serviceaccount kube-system/agent (PodTokenOnNode) → cluster-admin ` +
				`(Masters, ClusterRoleBinding "agent") ` +
				`[NodesReachClusterAdmin]`},
		},
		{
			rule:    "a DaemonSet on all nodes",
			objects: [][]any{nodes, everything, {tokenPod("a", "n1", "agent", "agent"), tokenPod("b", "n2", "agent", "agent")}},
			want: []string{
				`error: DaemonSet kube-system/agent: it has pods on 2 of 2 nodes and brings serviceaccount ` +
					`kube-system/agent to them, ` +
					`which leads to cluster-admin: serviceaccount kube-system/agent → ` +
					`cluster-admin (Masters, ClusterRoleBinding "agent") ` +
					`[DaemonSetGivesClusterAdmin]`,
				`error: Node n1: 2 of 2 nodes lead to cluster-admin: who takes over such a machine owns the cluster; ` +
					`the path from n1: ` +
					`node n1 → serviceaccount kube-system/agent (PodTokenOnNode) → cluster-admin ` +
					`(Masters, ClusterRoleBinding "agent") ` +
					`[NodesReachClusterAdmin]`,
			},
		},
		{rule: "what is only possible", objects: [][]any{nodes, webhooks, {tokenPod("a", "n1", "agent", "agent")}}},
		{rule: "a node of the control plane", objects: [][]any{nodes, {etcd}}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			options := Options{Checks: []CheckID{CheckPaths}, Paths: pathsOf(t, slices.Concat(test.objects...)...)}
			r := Examine(&Cluster{RBAC: rbac.NewPolicy()}, options)
			var got []string
			for _, f := range r.Findings {
				got = append(got, f.String())
				if f.Remedy == "" {
					t.Errorf("no remedy: %+v", f)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("findings are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
			wantUndetermined(t, r)
		})
	}
}

// TestAttackPathsWithoutObjects: the check is not made without pods and nodes, or if some could not
// be read. Findings of the parts that were read still count.
func TestAttackPathsWithoutObjects(t *testing.T) {
	c := &Cluster{RBAC: rbac.NewPolicy()}
	r := Examine(c, Options{Checks: []CheckID{CheckPaths}})
	wantUndetermined(t, r, CheckPaths)

	paths := noPaths(t)
	paths.Missing = []Missing{{"secrets", "not allowed to list", "bind a role"}}
	r = Examine(c, Options{Checks: []CheckID{CheckPaths}, Paths: paths})
	wantUndetermined(t, r, CheckPaths)
	if len(r.Findings) > 0 || finding.Code(r.Missing[0].Resource) != "secrets" {
		t.Errorf("%+v", r)
	}
}
