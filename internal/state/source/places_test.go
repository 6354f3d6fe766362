package source

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

const podWithPlaces = `
apiVersion: v1
kind: Pod
metadata:
  namespace: shop
  name: agent
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, controller: true}]
spec:
  serviceAccountName: agent
  initContainers: [{name: init}, {name: setup, envFrom: [{prefix: a}, {secretRef: {name: s}}]}]
  containers:
  - {name: plain}
  - name: agent
    securityContext: {privileged: true, capabilities: {add: [CHOWN, SYS_ADMIN]}}
    env: [{name: A, value: a}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: C, value: c}]
    volumeMounts: [{name: empty, mountPath: /e}, {name: host, mountPath: /h}, {name: s, mountPath: /s}, {name: mixed, mountPath: /m}]
  volumes:
  - {name: empty, emptyDir: {}}
  - {name: host, hostPath: {path: /}}
  - {name: none, emptyDir: {}}
  - {name: s, secret: {secretName: s}}
  - name: mixed
    projected: {sources: [{downwardAPI: {items: []}}, {serviceAccountToken: {path: t}}, {secret: {name: s}}]}
  - {name: kube-api-access-x, projected: {sources: [{serviceAccountToken: {path: t}}]}}
`

// The fields that are taken from a pod have the places of the whole pod, from files, snapshots and objects.
func TestPlacesInListsAreKept(t *testing.T) {
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte(podWithPlaces), pod); err != nil {
		t.Fatal(err)
	}
	whole := inventory.New()
	whole.Set(pod.DeepCopy())
	want := whole.Pods()[0].Fields
	if len(want) != 10 {
		t.Fatalf("the pod has the fields %+v", want)
	}
	for i := range 2 { // trimming once or twice is the same
		trim(pod, true)
		got := inventory.New()
		got.Set(pod.DeepCopy())
		if fields := got.Pods()[0].Fields; !reflect.DeepEqual(fields, want) {
			t.Errorf("trimmed %d times, the fields are\n%s\nwant\n%s", i+1, fieldsText(fields), fieldsText(want))
		}
	}
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, []byte(podWithPlaces), 0o600); err != nil {
		t.Fatal(err)
	}
	state, err := LoadFiles(t.Context(), []string{file}, FileOptions{Inventory: true})
	if err != nil {
		t.Fatal(err)
	}
	if fields := state.Inventory.Pods()[0].Fields; !reflect.DeepEqual(fields, want) {
		t.Errorf("from a file, the fields are\n%s\nwant\n%s", fieldsText(fields), fieldsText(want))
	}
}

func fieldsText(fields []inventory.Field) string {
	var lines []string
	for _, f := range fields {
		lines = append(lines, fmt.Sprintf("%+v\n", f))
	}
	return fmt.Sprint(slices.Concat(lines))
}
