package localplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestCredentials adds the Node authorizer to a plane that was started without it, and
// starts nodes that do not bootstrap: their credential is from an exec plugin.
func TestCredentials(t *testing.T) {
	plane := startPlane(t, Options{Authorization: RBACOnly})
	stranger, err := plane.UserKubeconfig("stranger", "system:node:stranger", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", stranger)
	if err != nil {
		t.Fatal(err)
	}
	services := func(ctx context.Context) error {
		_, err := clientFor(t, config).CoreV1().Services(corev1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err
	}
	wantForbidden(t, services(t.Context()))
	if err := plane.AuthorizeBy(t.Context(), InTree); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nodes may list services", services)
	for name, machine := range map[string]*MachineOptions{"plain": nil, "machine": {Address: "127.8.1.1"}} {
		t.Run(name, func(t *testing.T) {
			addNode(t, plane, name, NodeOptions{Credential: execCredential(t, plane, name), Machine: machine})
		})
	}
	requests, err := plane.client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests.Items {
		if request.Spec.SignerName != certificatesv1.KubeletServingSignerName {
			t.Errorf("%s asked for a certificate of %s", request.Spec.Username, request.Spec.SignerName)
		}
	}
	_, err = plane.AddNode(t.Context(), "both",
		NodeOptions{Credential: &clientcmdapi.AuthInfo{}, BootstrapKubeconfig: plane.AdminKubeconfig()})
	if err == nil {
		t.Error("a node accepted two credentials")
	}
}

// execCredential returns an exec plugin that prints a client certificate of the node.
func execCredential(t *testing.T, plane *Plane, node string) *clientcmdapi.AuthInfo {
	t.Helper()
	certificate, key, err := plane.ClientCertificate(node, "system:node:"+node, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "credential")
	text := fmt.Sprintf(`#!/bin/sh
indent() { sed 's/$/\\n/' "$1" | tr -d '\n'; }
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
printf '"status":{"clientCertificateData":"%%s","clientKeyData":"%%s"}}' "$(indent %s)" "$(indent %s)"
`, certificate, key)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		Command: script, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
}
