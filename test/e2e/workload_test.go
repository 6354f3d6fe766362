package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// eventually waits until a condition holds. The failure has the last error.
func eventually(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		// The last request may be cut off by the deadline. Its error is ignored.
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("wait until %s: %v (the last answer: %v)", what, err, last)
	}
}

// namespace creates a namespace and waits until pods can be created in it. The test
// deletes it.
func namespace(t *testing.T, c kubernetes.Interface, name string) {
	t.Helper()
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the namespace "+name+" has a service account", func(ctx context.Context) error {
		_, err := c.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// newSecretPod returns a pod bound to a node, and the secret and config map of the same
// name that it mounts.
func newSecretPod(namespace, name, node string) (*corev1.Pod, *corev1.Secret, *corev1.ConfigMap) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName:                      node,
		TerminationGracePeriodSeconds: new(int64),
		Containers:                    []corev1.Container{{Name: "app", Image: "registry.example.com/app:1.0"}},
		Volumes: []corev1.Volume{
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}},
			{
				Name: "config",
				VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
				},
			},
		},
	}}
	return pod, &corev1.Secret{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: meta}
}

// createSecretPod creates all three objects.
func createSecretPod(ctx context.Context, c kubernetes.Interface, namespace, name, node string) error {
	pod, secret, config := newSecretPod(namespace, name, node)
	if _, err := c.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := c.CoreV1().ConfigMaps(namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// running returns nil when a pod runs.
func running(ctx context.Context, c kubernetes.Interface, namespace, name string) error {
	pod, err := c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("pod %s is %s", name, pod.Status.Phase)
	}
	return nil
}

// gone returns nil if a pod does not exist.
func gone(ctx context.Context, c kubernetes.Interface, namespace, name string) error {
	_, err := c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("pod %s is still there", name)
	default:
		return err
	}
}

var errAllowed = errors.New("it was allowed")

// existing ignores the error for an existing object.
func existing(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
