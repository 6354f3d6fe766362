package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestInvalidUTF8StopsNoWatch creates a pod with a string that is not UTF-8, which an API
// server stores and sends in protobuf. A user that may create pods must not be able to
// stop the authorizer from receiving other pods.
func TestInvalidUTF8StopsNoWatch(t *testing.T) {
	const space, node = "poison", "web-1"
	admin := client(t, ours.Plane)
	namespace(t, admin, space)
	kubelet := ours.as(t, node)
	secretOf := func(name string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := kubelet.CoreV1().Secrets(space).Get(ctx, name, metav1.GetOptions{})
			return err
		}
	}
	orFatal(t, createSecretPod(t.Context(), admin, space, "before", node))
	eventually(t, "the node reads the secret of its pod", secretOf("before"))

	config := ours.AdminConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	protobuf, err := kubernetes.NewForConfig(config)
	orFatal(t, err)
	poisoned, _, _ := newSecretPod(space, "poisoned", node)
	poisoned.Spec.Volumes = append(poisoned.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "x\xff"}},
		}},
	}})
	_, err = protobuf.CoreV1().Pods(space).Create(t.Context(), poisoned, metav1.CreateOptions{})
	orFatal(t, err)

	orFatal(t, createSecretPod(t.Context(), admin, space, "after", node))
	eventually(t, "the node reads the secret of a later pod", secretOf("after"))
	orFatal(t, admin.CoreV1().Pods(space).Delete(t.Context(), "before", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	eventually(t, "the secret of a pod that is gone is refused",
		func(ctx context.Context) error { return refusal(secretOf("before")(ctx)) })
	for _, replica := range oursReplicas.Replicas {
		orFatal(t, replica.Ready(t.Context()))
	}
}
