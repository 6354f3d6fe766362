package generate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resourceNames are names of resources, of which some are extended ones, and
// some nearly.
var resourceNames = []string{
	"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "attachable-volumes-aws-ebs", "pods", "gpu",
	"example.com/gpu", "example.com/nic", "a.example.com/gpu", "example.com/requests.gpu", "vendor.io/A_b.c",
	"kubernetes.io/x", "a.kubernetes.io/x", "xkubernetes.io/x", "k8s.io/x", "example.com/kubernetes.io/x",
	"requests.example.com/gpu", "requests.cpu", "limits.example.com/gpu",
	"", "/", "/x", "example.com/", "a/b/c", "Example.com/gpu", "example.com/-x", "exa mple.com/x", "-a.com/x", "example.com/x y",
	"example.com/" + strings.Repeat("x", 63), "example.com/" + strings.Repeat("x", 64),
	strings.Repeat("a.", 121) + "com/x", strings.Repeat("a.", 122) + "com/x", strings.Repeat("a.", 126) + "com/x",
}

// NewTolerant generates a pod whose containers ask for resources, and which has
// some tolerations already.
func NewTolerant(seed uint64) *corev1.Pod {
	g := &podBuilder{generator: &generator{r: source(seed, "tolerant")}, pod: &corev1.Pod{}}
	spec := &g.pod.Spec
	for range g.r.IntN(3) {
		spec.Containers = append(spec.Containers, corev1.Container{Resources: g.resources()})
	}
	for range g.r.IntN(2) {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Resources: g.resources()})
	}
	if chance(g.r, 20) {
		spec.EphemeralContainers = []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Resources: g.resources()}},
		}
	}
	if chance(g.r, 20) {
		spec.Overhead = g.resources().Requests
		spec.Resources = new(g.resources())
	}
	if chance(g.r, 10) {
		spec.Tolerations = []corev1.Toleration{}
	}
	for range g.r.IntN(4) {
		spec.Tolerations = append(spec.Tolerations, g.toleration())
	}
	return g.pod
}

func (b *podBuilder) resources() corev1.ResourceRequirements {
	list := func() corev1.ResourceList {
		quantities := corev1.ResourceList{}
		for range b.r.IntN(3) {
			quantities[corev1.ResourceName(pick(b.r, resourceNames))] = resource.MustParse(pick(b.r, []string{"0", "1", "2"}))
		}
		return quantities
	}
	return corev1.ResourceRequirements{Requests: list(), Limits: list()}
}

// toleration draws one that is, or resembles, the toleration of an extended resource.
func (b *podBuilder) toleration() corev1.Toleration {
	t := corev1.Toleration{Key: pick(b.r, resourceNames[:14]), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	switch b.r.IntN(6) {
	case 0:
		t.Operator = pick(b.r, []corev1.TolerationOperator{corev1.TolerationOpEqual, ""})
	case 1:
		t.Effect = pick(b.r, []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule, ""})
	case 2:
		t.TolerationSeconds = new(int64(b.r.IntN(2)))
	case 3:
		t.Value = pick(b.r, []string{"x", "true"})
	}
	return t
}
