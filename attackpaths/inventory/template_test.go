package inventory_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

func TestPodsOfOneTemplateShareIt(t *testing.T) {
	pod := func(namespace, name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		p.Spec.ServiceAccountName, p.Spec.NodeName = "web", "node-of-"+name
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}
		change(p)
		return p
	}
	for _, c := range []struct {
		rule   string
		other  *corev1.Pod
		shared bool
	}{
		{"another name and node", pod("shop", "other", func(*corev1.Pod) {}), true},
		{
			"another placement",
			pod("shop", "other", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "a"} }), true,
		},
		{"another namespace", pod("bank", "other", func(*corev1.Pod) {}), false},
		{"another account", pod("shop", "other", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "x" }), false},
		{"another list of secrets", pod("shop", "other", func(p *corev1.Pod) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}}
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "b"}}}}
		}), false},
		{"a way out", pod("shop", "other", func(p *corev1.Pod) { p.Spec.HostPID = true }), false},
		{"a container that was added", pod("shop", "other", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
		}), false},
		{
			"a mirror pod",
			pod("shop", "other", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }), false,
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			i := inventory.New()
			i.Set(pod("shop", "web", func(*corev1.Pod) {}))
			i.Set(c.other)
			pods := i.Pods()
			if got := pods[0].Template == pods[1].Template; got != c.shared {
				t.Errorf("shared: %v, want %v", got, c.shared)
			}
		})
	}
}
