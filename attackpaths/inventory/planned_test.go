package inventory_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

func amount(resources ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(resources); i += 2 {
		list[corev1.ResourceName(resources[i])] = resource.MustParse(resources[i+1])
	}
	return list
}

func asking(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// A planned pod may come to a node that is large enough for it, selected and tolerated.
func TestPlacementOfPlannedPods(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": "web"}}}
	node.Status.Allocatable = amount("cpu", "2", "memory", "4Gi", "nvidia.com/gpu", "1")
	node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}}
	always := corev1.ContainerRestartPolicyAlways
	sidecar := asking(amount("cpu", "1"), nil)
	sidecar.RestartPolicy = &always
	named := func(name string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{name}}},
			}}},
		}}
	}
	containers := func(all ...corev1.Container) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Containers = all }
	}
	starting := func(all ...corev1.Container) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.InitContainers = all }
	}
	for name, c := range map[string]struct {
		edit func(*corev1.PodSpec)
		want bool
	}{
		"what fits":                     {func(*corev1.PodSpec) {}, true},
		"a taint that is not tolerated": {func(s *corev1.PodSpec) { s.Tolerations = nil }, false},
		"another pool":                  {func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": "db"} }, false},
		"affinity to the node":          {func(s *corev1.PodSpec) { s.Affinity = named("n") }, true},
		"affinity to another node":      {func(s *corev1.PodSpec) { s.Affinity = named("m") }, false},
		"all of the node":               {containers(asking(amount("cpu", "2"), nil)), true},
		"too much":                      {containers(asking(amount("cpu", "2001m"), nil)), false},
		"too much together": {func(s *corev1.PodSpec) {
			s.Containers = []corev1.Container{asking(amount("cpu", "1"), nil), asking(amount("cpu", "1100m"), nil)}
		}, false},
		"a limit counts as a request": {containers(asking(nil, amount("memory", "5Gi"))), false},
		"a request counts, not the limit": {func(s *corev1.PodSpec) {
			s.Containers = []corev1.Container{asking(amount("cpu", "1"), amount("cpu", "9"))}
		}, true},
		"a device that the node has":     {containers(asking(amount("nvidia.com/gpu", "1"), nil)), true},
		"a device that it does not have": {containers(asking(amount("amd.com/gpu", "1"), nil)), false},
		"none of such a device":          {containers(asking(amount("amd.com/gpu", "0"), nil)), true},
		"an init container alone":        {starting(asking(amount("cpu", "2"), nil)), true},
		"a large init container":         {starting(asking(amount("cpu", "3"), nil)), false},
		"a sidecar beside a container": {func(s *corev1.PodSpec) {
			s.InitContainers, s.Containers = []corev1.Container{sidecar}, []corev1.Container{asking(amount("cpu", "1500m"), nil)}
		}, false},
		"overhead": {func(s *corev1.PodSpec) {
			s.Containers, s.Overhead = []corev1.Container{asking(amount("cpu", "2"), nil)}, amount("cpu", "100m")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := inventory.New()
			i.Set(&node)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			pod.Spec.NodeSelector = map[string]string{"pool": "web"}
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
			c.edit(&pod.Spec)
			p := i.SetPlanned(pod, inventory.Workload{Group: "apps", Resource: "deployments", Name: "p"})
			n, _ := i.Node("n")
			if got := p.Placement.Allows(&n, func(string) bool { return false }); got != c.want {
				t.Errorf("allowed is %v, want %v", got, c.want)
			}
			n.Allocatable = nil
			if !p.Placement.Fits(&n) {
				t.Error("a node of unknown size must be large enough")
			}
		})
	}
}

// A pod that runs is as its workload's template if only what the API server adds differs.
func TestPodsLikeTheirTemplate(t *testing.T) {
	base := func() *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
		pod.Spec.ServiceAccountName, pod.Spec.Containers = "a", []corev1.Container{{Name: "c"}}
		return pod
	}
	yes := true
	for name, c := range map[string]struct {
		edit func(*corev1.PodSpec)
		want bool
	}{
		"the same": {func(*corev1.PodSpec) {}, true},
		"tolerations that admission adds": {func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}}
		}, true},
		"a node":             {func(s *corev1.PodSpec) { s.NodeName = "n" }, true},
		"pull secrets":       {func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}} }, true},
		"another account":    {func(s *corev1.PodSpec) { s.ServiceAccountName = "b" }, false},
		"another toleration": {func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Key: "x"}} }, false},
		"a selector":         {func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"a": "b"} }, false},
		"a secret": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}}}
		}, false},
		"privileges": {func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i, running := inventory.New(), base()
			c.edit(&running.Spec)
			i.Set(running)
			planned := inventory.NewPlanned(base(), inventory.Workload{})
			for _, p := range i.Pods() {
				if got := p.Like(planned); got != c.want {
					t.Errorf("like is %v, want %v", got, c.want)
				}
			}
		})
	}
}
