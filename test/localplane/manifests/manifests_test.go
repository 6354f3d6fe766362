package manifests

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func TestReadPutsNamespacesFirst(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", `
# A comment before the first document.
---
{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: theme, namespace: shop}}
`)
	write(t, dir, "b.yml", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	write(t, dir, "notes.txt", "not a manifest")
	objects, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, Name(object))
	}
	if want := []string{"Namespace shop", "Secret shop/key", "ConfigMap shop/theme"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestReadReportsMistakes(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"not YAML":       {"a: [", "broken.yaml"},
		"without a name": {"{apiVersion: v1, kind: Secret}", "document 1 lacks"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "broken.yaml", test.text)
			if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no .yaml file") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestNotReady(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	three := int32(3)
	running := corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for name, test := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"a deployment without all its pods": {
			&appsv1.Deployment{
				ObjectMeta: meta("catalog"), Spec: appsv1.DeploymentSpec{Replicas: &three},
				Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
			},
			"Deployment shop/catalog has 1 of 3 pods ready",
		},
		"a daemon set that no controller has processed": {
			&appsv1.DaemonSet{ObjectMeta: meta("shipper")},
			"DaemonSet shop/shipper has 0 of 0 pods ready",
		},
		"a pod that cannot be scheduled": {
			&corev1.Pod{ObjectMeta: meta("catalog"), Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node matches"},
			}}},
			"Pod shop/catalog: not scheduled: no node matches",
		},
		"a waiting container": {
			&corev1.Pod{ObjectMeta: meta("catalog"), Status: corev1.PodStatus{
				Phase: corev1.PodPending,
				ContainerStatuses: []corev1.ContainerStatus{
					{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
				},
			}},
			"Pod shop/catalog: ContainerCreating",
		},
		"a pod that is ready":      {&corev1.Pod{ObjectMeta: meta("catalog"), Status: running}, ""},
		"a pod that has completed": {&corev1.Pod{ObjectMeta: meta("import"), Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, missing, err := listPods(context.Background(), fake.NewClientset(test.object))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(missing, "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
