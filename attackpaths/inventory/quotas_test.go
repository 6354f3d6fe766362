package inventory_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// A quota keeps new objects out once as many are there as it allows.
func TestFullQuotas(t *testing.T) {
	for _, c := range []struct{ rule, quota, group, resource, want string }{
		{"as many as it allows", "{spec: {hard: {pods: 2}}, status: {used: {pods: 2}}}", "", "pods", "q"},
		{"one less", "{spec: {hard: {pods: 2}}, status: {used: {pods: 1}}}", "", "pods", ""},
		{"none, whatever its status", "{spec: {hard: {pods: 0}}}", "", "pods", "q"},
		{"not known", "{spec: {hard: {pods: 2}}}", "", "pods", ""},
		{"a count by resource", "{spec: {hard: {count/pods: 1}}, status: {used: {count/pods: 1}}}", "", "pods", "q"},
		{"a count of a group", "{spec: {hard: {count/jobs.batch: 0}}}", "batch", "jobs", "q"},
		{"of another group", "{spec: {hard: {count/jobs.batch: 0}}}", "", "jobs", ""},
		{"of another resource", "{spec: {hard: {secrets: 0}}}", "", "pods", ""},
		{"requests, which a pod need not make", "{spec: {hard: {requests.cpu: 0}}}", "", "pods", ""},
		{"for pods of some class", "{spec: {hard: {pods: 0}, scopes: [BestEffort]}}", "", "pods", ""},
	} {
		quota := &corev1.ResourceQuota{}
		if err := yaml.UnmarshalStrict([]byte(c.quota), quota); err != nil {
			t.Fatalf("%s: %v", c.rule, err)
		}
		quota.Namespace, quota.Name = "shop", "q"
		i := inventory.New()
		i.Set(quota)
		if got := i.FullQuota("shop", c.group, c.resource); got != c.want {
			t.Errorf("%s: the full quota is %q, want %q", c.rule, got, c.want)
		}
		if got := i.FullQuota("store", c.group, c.resource); got != "" {
			t.Errorf("%s: another namespace has the full quota %q", c.rule, got)
		}
		i.Delete("ResourceQuota", "shop", "q")
		if got := i.FullQuota("shop", c.group, c.resource); got != "" {
			t.Errorf("%s: without it, the full quota is %q", c.rule, got)
		}
	}
}

// The handler of a runtime class says whether its pods are in a sandbox, and not the name of the class.
func TestRuntimeClasses(t *testing.T) {
	privileged := func(class string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
		if class != "" {
			pod.Spec.RuntimeClassName = &class
		}
		return pod
	}
	for _, c := range []struct{ class, handler, want string }{
		{"", "", ""},
		{"safe", "kata-qemu", "what the sandbox of the pod's runtime class lets through"},
		{"safe", "runsc", "what the sandbox of the pod's runtime class lets through"},
		{"gvisor", "runc", ""},
		{"nvidia", "nvidia", ""},
		{"gvisor", "", "which runtime the pod's runtime class names, of which nothing is known"},
	} {
		i := inventory.New()
		i.Set(privileged(c.class))
		if c.handler != "" {
			i.Set(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: c.class}, Handler: c.handler})
		}
		got := i.Pods()[0].WaysOut(i.References())
		if len(got) != 1 || got[0].DependsOn != c.want {
			t.Errorf("class %q with handler %q: ways out are %+v, want one that depends on %q", c.class, c.handler, got, c.want)
		}
	}
}
