package graph_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
)

// mounting returns a pod that mounts claims.
func mounting(name, node string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

func volumeOf(name, claim string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: claim}},
	}
}

func TestUnboundClaims(t *testing.T) {
	g := graph.New()
	g.SetPod(mounting("b", "worker-1", "orders", "bound"))
	g.SetPod(mounting("a", "worker-1", "orders", "images"))
	g.SetPod(mounting("c", "worker-2", "other"))
	g.SetPersistentVolume(volumeOf("pv-1", "bound"))
	claims := func(node string) string {
		var text string
		for _, e := range g.UnboundClaims(node) {
			text += fmt.Sprintf("%s <- %s (%s); ", e.From, e.To, e.Field)
		}
		return text
	}
	for node, want := range map[string]string{
		"worker-1": "persistentvolumeclaim shop/images <- pod shop/a (spec.volumes[name=images].persistentVolumeClaim); " +
			"persistentvolumeclaim shop/orders <- pod shop/a (spec.volumes[name=orders].persistentVolumeClaim); ",
		"worker-2": "persistentvolumeclaim shop/other <- pod shop/c (spec.volumes[name=other].persistentVolumeClaim); ",
		"none":     "",
	} {
		if got := claims(node); got != want {
			t.Errorf("%s: got %q, want %q", node, got, want)
		}
	}
	g.SetPersistentVolume(volumeOf("pv-2", "other"))
	if got := claims("worker-2"); got != "" {
		t.Errorf("once a volume is bound, the claim is still unbound: %q", got)
	}
	g.DeletePersistentVolume("pv-2")
	if claims("worker-2") == "" {
		t.Error("without its volume, the claim is not unbound")
	}
}

func TestHasPods(t *testing.T) {
	g := graph.New()
	g.SetPod(mounting("a", "worker-1"))
	if !g.HasPods("worker-1") || g.HasPods("worker-2") {
		t.Error("pods of another node count")
	}
	g.DeletePod("shop", "a")
	if g.HasPods("worker-1") {
		t.Error("a pod that went away is still there")
	}
}

// TestObjects compares Objects with Reach.
func TestObjects(t *testing.T) {
	g := graph.New()
	g.SetPod(mounting("a", "worker-1", "orders", "images"))
	g.SetPod(mounting("b", "worker-1", "orders"))
	g.SetPersistentVolume(volumeOf("pv-1", "orders"))
	for _, kind := range graph.Kinds() {
		var want string
		for _, r := range g.Reach("worker-1") {
			if r.Kind == kind {
				want += r.Namespace + "/" + r.Name + " "
			}
		}
		var got string
		for _, o := range g.Objects("worker-1", kind) {
			got += o.Namespace + "/" + o.Name + " "
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
	if len(g.Objects("worker-1", graph.PersistentVolumeClaim)) != 2 || g.Objects("none", graph.Pod) != nil {
		t.Error("objects are not those of the node")
	}
}
