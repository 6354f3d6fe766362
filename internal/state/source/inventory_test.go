package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// A cluster is read into an inventory, secrets without their data; the stub fails the test
// when the data is requested.
func TestInventoryOfACluster(t *testing.T) {
	s := newStub(t)
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"}
	}
	pod := boundPod("shop", "api", "worker", "db")
	yes := true
	pod.Spec.Containers = append(
		pod.Spec.Containers,
		corev1.Container{Name: "agent", SecurityContext: &corev1.SecurityContext{Privileged: &yes}},
	)
	s.set("pods", pod)
	s.set("nodes", &corev1.Node{ObjectMeta: meta("", "worker"), Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated"}}}})
	s.set("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"a": "b"}}})
	s.set("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: meta("", "data"), Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: "data"},
	}})
	s.set("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
		ObjectMeta: meta("shop", "data"), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "data"},
	})
	token := &corev1.Secret{
		ObjectMeta: meta("shop", "token"),
		Type:       corev1.SecretTypeServiceAccountToken,
		Data:       map[string][]byte{"token": []byte("x")},
	}
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: "web", corev1.ServiceAccountUIDKey: "1"}
	s.set("secrets", token)
	bootstrap := &corev1.Secret{ObjectMeta: meta("kube-system", "bootstrap-token-abcdef"), Type: corev1.SecretTypeBootstrapToken}
	bootstrap.Annotations = map[string]string{corev1.ServiceAccountNameKey: "web"} // of whoever made it
	s.set("secrets", bootstrap)
	s.set("validatingwebhookconfigurations", &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: meta("", "w"), Webhooks: []admissionv1.ValidatingWebhook{{Name: "a.b.c"}},
	})

	got := list(t, s, LiveOptions{Inventory: true}).Inventory
	if pods := got.Pods(); len(pods) != 1 || len(pods[0].Escapes) != 1 || pods[0].Node != "worker" {
		t.Errorf("pods are %+v", pods)
	}
	if claimed := got.References().Claimed; len(claimed[inventory.Name{Namespace: "shop", Name: "data"}]) != 1 ||
		claimed[inventory.Name{Namespace: "shop", Name: "data"}][0].Folder != "/etc" {
		t.Errorf("volumes of claims are %+v", claimed)
	}
	if nodes := got.Nodes(); len(nodes) != 1 || len(nodes[0].Taints) != 1 {
		t.Errorf("nodes are %+v", nodes)
	}
	if all := got.Namespaces(); len(all) != 1 || all[0].Labels["a"] != "b" {
		t.Errorf("namespaces are %+v", all)
	}
	if want := []inventory.Secret{
		{Name: inventory.Name{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: corev1.SecretTypeBootstrapToken},
		{Name: inventory.Name{Namespace: "shop", Name: "token"}, Type: corev1.SecretTypeServiceAccountToken, ServiceAccount: "web"},
	}; !slices.Equal(got.Secrets(), want) {
		t.Errorf("secrets are %+v, want %+v", got.Secrets(), want)
	}
	if all := got.Admission(); len(all) != 1 || all[0].String() != "ValidatingWebhookConfiguration w (a.b.c)" {
		t.Errorf("admission is %v", all)
	}

	// Who does not need an inventory needs no right to read these kinds.
	for _, resource := range []string{
		"secrets", "namespaces", "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings",
	} {
		s.setAllowed("list "+resource, false)
	}
	if state := list(t, s, LiveOptions{}); state.Inventory != nil || len(state.Missing()) > 0 {
		t.Errorf("without an inventory there are %v, and missing %v", state.Inventory, state.Missing())
	}
	missing := list(t, s, LiveOptions{Inventory: true}).Missing()
	if len(missing) != 6 || !strings.HasPrefix(missing[2].Reason, "not allowed to list: secrets is forbidden") {
		t.Errorf("missing are %v", missing)
	}
	for _, m := range missing {
		if !m.ForInventory() {
			t.Errorf("%s is not for an inventory alone", m.Resource)
		}
	}
}

// Of a pod are kept the component of the control plane that it runs, not its command, and whether it has ended.
func TestInventoryOfFiles(t *testing.T) {
	const objects = `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"old","deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}}},
{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"kube-system","name":"x"},"spec":{"containers":[
{"name":"c","image":"registry.example.com/s3cret","command":["/usr/bin/kube-apiserver","--s3cret"]}]},"status":{"phase":"Failed"}}]}`
	s := mustLoad(t, "objects.json", objects)
	if pods := s.Inventory.Pods(); len(pods) != 1 || pods[0].ControlPlane != "kube-apiserver" || !pods[0].Ended {
		t.Errorf("pods are %+v", pods)
	}
	if all := s.Inventory.Namespaces(); len(all) != 1 || !all[0].Terminating || all[0].Labels["a"] != "b" {
		t.Errorf("namespaces are %+v", all)
	}
	written := decompressAll(t, takeSnapshot(t, s))
	if strings.Contains(written, "s3cret") || !strings.Contains(written, "kube-apiserver") {
		t.Errorf("the snapshot is %s", written)
	}
	again := mustLoad(t, "again.snapshot", written)
	if pods := again.Inventory.Pods(); len(pods) != 1 || pods[0].ControlPlane != "kube-apiserver" || !pods[0].Ended {
		t.Errorf("pods of the snapshot are %+v", pods)
	}
}

// The ConfigMap with the identity mappings of EKS is not kept, and shows that the cluster is one of EKS.
func TestConfigMapOfEKS(t *testing.T) {
	for text, want := range map[string]bool{
		"metadata: {namespace: kube-system, name: aws-auth}": true,
		"metadata: {namespace: shop, name: aws-auth}":        false,
		"metadata: {namespace: kube-system, name: other}":    false,
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := LoadFiles(t.Context(), []string{file}, FileOptions{Inventory: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Inventory.EKS(); got != want {
			t.Errorf("%s: EKS is %v, want %v", text, got, want)
		}
	}
}
