package extendedtoleration_test

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/node-authorizer/node-authorizer/internal/extendedtoleration"
)

func requests(names ...string) []corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	for _, name := range names {
		c.Resources.Requests[corev1.ResourceName(name)] = resource.MustParse("1")
	}
	return []corev1.Container{c}
}

func exists(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}

func TestTolerations(t *testing.T) {
	seconds := int64(5)
	limited := exists("example.com/gpu")
	limited.TolerationSeconds = &seconds
	equal := corev1.Toleration{Key: "example.com/gpu", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule}

	for _, tc := range []struct {
		rule    string
		spec    corev1.PodSpec
		want    []corev1.Toleration
		changed bool
	}{
		{
			"a pod without extended resources is not changed",
			corev1.PodSpec{Containers: requests("cpu", "memory", "hugepages-2Mi")},
			nil, false,
		},
		{
			"tolerations are added in the order of their keys",
			corev1.PodSpec{Containers: requests("example.com/b", "example.com/a")},
			[]corev1.Toleration{exists("example.com/a"), exists("example.com/b")},
			true,
		},
		{
			"init containers count",
			corev1.PodSpec{InitContainers: requests("example.com/gpu")},
			[]corev1.Toleration{exists("example.com/gpu")},
			true,
		},
		{
			"ephemeral containers do not",
			corev1.PodSpec{
				EphemeralContainers: []corev1.EphemeralContainer{
					{EphemeralContainerCommon: corev1.EphemeralContainerCommon(requests("example.com/gpu")[0])},
				},
			},
			nil, false,
		},
		{
			"limits alone do not",
			corev1.PodSpec{
				Containers: []corev1.Container{
					{Resources: corev1.ResourceRequirements{Limits: requests("example.com/gpu")[0].Resources.Requests}},
				},
			},
			nil, false,
		},
		{
			"a resource that two containers request is tolerated once",
			corev1.PodSpec{Containers: append(requests("example.com/gpu"), requests("example.com/gpu")...)},
			[]corev1.Toleration{exists("example.com/gpu")},
			true,
		},
		{
			"other tolerations keep their position",
			corev1.PodSpec{Containers: requests("example.com/gpu"), Tolerations: []corev1.Toleration{exists("z")}},
			[]corev1.Toleration{exists("z"), exists("example.com/gpu")},
			true,
		},
		{
			"an existing one is kept",
			corev1.PodSpec{
				Containers: requests("example.com/gpu"), Tolerations: []corev1.Toleration{exists("example.com/gpu"), exists("z")},
			},
			[]corev1.Toleration{exists("example.com/gpu"), exists("z")},
			false,
		},
		{
			"one with a time limit loses it",
			corev1.PodSpec{Containers: requests("example.com/gpu"), Tolerations: []corev1.Toleration{limited, exists("z")}},
			[]corev1.Toleration{exists("example.com/gpu"), exists("z")},
			true,
		},
		{
			"one with another operator stays beside the new one",
			corev1.PodSpec{Containers: requests("example.com/gpu"), Tolerations: []corev1.Toleration{equal}},
			[]corev1.Toleration{equal, exists("example.com/gpu")},
			true,
		},
		{
			"resources of Kubernetes are not extended",
			corev1.PodSpec{Containers: requests("kubernetes.io/x", "node.kubernetes.io/x", "example.com/kubernetes.io/x")},
			nil,
			false,
		},
		{"names without a domain are not extended", corev1.PodSpec{Containers: requests("gpu")}, nil, false},
		{"quota names are not extended", corev1.PodSpec{Containers: requests("requests.example.com/gpu")}, nil, false},
		{
			"names that are not qualified are not extended",
			corev1.PodSpec{Containers: requests("example.com/", "example.com/a/b", "Example!/x")},
			nil, false,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			pod := &corev1.Pod{Spec: tc.spec}
			before := pod.DeepCopy()
			got, changed := extendedtoleration.Tolerations(pod)
			if changed != tc.changed || fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("got %v, %v, want %v, %v", got, changed, tc.want, tc.changed)
			}
			if !reflect.DeepEqual(before, pod) {
				t.Error("the pod was changed")
			}
			if again, changed := extendedtoleration.Tolerations(&corev1.Pod{Spec: withTolerations(tc.spec, got)}); changed {
				t.Errorf("applied twice, it changes to %v", again)
			}
		})
	}
}

func withTolerations(spec corev1.PodSpec, tolerations []corev1.Toleration) corev1.PodSpec {
	spec.Tolerations = tolerations
	return spec
}

func Example() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "train",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("2")},
		},
	}}}}
	tolerations, changed := extendedtoleration.Tolerations(pod)
	fmt.Println(changed, tolerations[0].Key, tolerations[0].Operator, tolerations[0].Effect)
	// Output:
	// true example.com/gpu Exists NoSchedule
}
