package attackpaths_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
)

// large is a cluster with so many nodes, thirty pods and two service accounts for each, and six
// roles and bindings for five nodes. One DaemonSet reads secrets everywhere.
func large(nodes int) *attackpaths.Cluster {
	c, r := newCluster(), rand.New(rand.NewPCG(1, 2))
	namespaces, verbs := max(1, nodes/5), []string{"get", "create", "update"}
	name := func(i int) string { return fmt.Sprintf("team-%d", i) }
	meta := func(namespace int, kind string, i int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: name(namespace), Name: fmt.Sprintf("%s-%d", kind, i)}
	}
	for i := range namespaces {
		c.Inventory.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name(i), Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"},
		}})
		for j := range 10 {
			c.Inventory.Set(&corev1.ServiceAccount{ObjectMeta: meta(i, "app", j)})
		}
		for j := range 30 {
			c.Inventory.Set(&corev1.Secret{ObjectMeta: meta(i, "secret", j)})
		}
		for j := range 6 {
			rules := []rbacv1.PolicyRule{
				{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps", "services"}},
				{Verbs: []string{verbs[j%3]}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
			}
			c.RBAC.SetRole(&rbacv1.Role{ObjectMeta: meta(i, "role", j), Rules: rules})
			c.RBAC.SetRoleBinding(&rbacv1.RoleBinding{
				ObjectMeta: meta(i, "role", j),
				RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: fmt.Sprint("role-", j)},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: fmt.Sprint("app-", j)}},
			})
		}
	}
	for i := range nodes {
		node := fmt.Sprintf("node-%d", i)
		c.Inventory.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		for j := range 30 {
			ns := r.IntN(namespaces)
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: name(ns), Name: fmt.Sprintf("pod-%d-%d", i, j),
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: "apps/v1", Kind: "StatefulSet", Name: "x", Controller: new(bool),
					}},
				},
				Spec: corev1.PodSpec{
					NodeName: node, ServiceAccountName: fmt.Sprint("app-", r.IntN(10)),
					Containers: []corev1.Container{{Name: "c"}},
					Volumes: []corev1.Volume{
						{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
							Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}},
						}}},
						{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
							SecretName: fmt.Sprint("secret-", r.IntN(30)),
						}}},
					},
				},
			}
			*p.OwnerReferences[0].Controller = true
			c.Inventory.Set(p)
			c.Relations.SetPod(p)
		}
	}
	return c
}

func BenchmarkNew(b *testing.B) {
	for _, nodes := range []int{500, 1500, 5000} {
		c := large(nodes)
		b.Run(fmt.Sprint(nodes, "_nodes"), func(b *testing.B) {
			for b.Loop() {
				if _, err := attackpaths.New(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// withPolicies adds what clusters often demand of pods.
func withPolicies(c *attackpaths.Cluster) *attackpaths.Cluster {
	for name, expression := range map[string]string{
		"privileged": "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || " +
			"!c.securityContext.privileged)",
		"host-paths": "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
		"accounts":   "object.spec.serviceAccountName != 'app-1'",
		"labels":     "has(object.metadata.labels) && 'team' in object.metadata.labels",
		"users":      "request.userInfo.username != 'nobody'",
	} {
		p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		rule := admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create}}
		rule.APIGroups, rule.APIVersions, rule.Resources = []string{""}, []string{"v1"}, []string{"pods"}
		p.Spec.MatchConstraints = &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
		}
		p.Spec.Validations = []admissionv1.Validation{{Expression: expression}}
		c.Inventory.Set(p)
		b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.PolicyName, b.Spec.ValidationActions = name, []admissionv1.ValidationAction{admissionv1.Deny}
		c.Inventory.Set(b)
	}
	return c
}

func BenchmarkNewWithPolicies(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		c := withPolicies(large(nodes))
		b.Run(fmt.Sprint(nodes, "_nodes"), func(b *testing.B) {
			for b.Loop() {
				c.Policies = admissionpolicy.New()
				if _, err := attackpaths.New(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAllNodes(b *testing.B) {
	for _, nodes := range []int{500, 1500, 5000} {
		g, err := attackpaths.New(large(nodes))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(nodes, "_nodes"), func(b *testing.B) {
			for b.Loop() {
				g.AllNodes()
			}
		})
	}
}

func BenchmarkFromNode(b *testing.B) {
	g, err := attackpaths.New(large(5000))
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := g.From(attackpaths.Holding{Kind: attackpaths.Node, Name: "node-7"}); err != nil {
			b.Fatal(err)
		}
	}
}
