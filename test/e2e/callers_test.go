package e2e

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// aboutAnotherNode asks what the node pay-1 may read.
const aboutAnotherNode = `{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
	"user": "system:node:pay-1", "groups": ["system:nodes"],
	"resourceAttributes": {"verb": "get", "version": "v1", "resource": "secrets", "namespace": "payments", "name": "card-processor"}}}`

// TestKubeletsMayNotAskTheServer: the cluster's authority signs the certificates of kube-apiserver and of
// kubelets. With the config file in deploy, the server answers the former only.
func TestKubeletsMayNotAskTheServer(t *testing.T) {
	kubelet, asAPIServer := httpClient(t, ours.nodeConfig(t, "web-1")), asAPIServer(t)
	for _, replica := range oursReplicas.Replicas {
		for _, path := range []string{"/authorize", "/admit", "/mutate"} {
			url := "https://" + replica.Address + path
			refused, err := server.Post(t.Context(), kubelet, url, "application/json", []byte(aboutAnotherNode))
			if err == nil {
				t.Errorf("a kubelet asks %s: %d %s, %v", path, refused.Status, refused.Body, err)
			}
		}
		answer, err := server.Post(t.Context(), asAPIServer, "https://"+replica.Address+"/authorize", "application/json",
			[]byte(aboutAnotherNode))
		if err != nil || answer.Status != http.StatusOK || !strings.Contains(answer.Body, `"allowed":true`) {
			t.Errorf("kube-apiserver asks: %d %s, %v", answer.Status, answer.Body, err)
		}
	}
}

// asAPIServer returns a client with the name of kube-apiserver.
func asAPIServer(t *testing.T) *http.Client {
	t.Helper()
	certificate, key, err := ours.ClientCertificate("caller", "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	config := ours.AdminConfig()
	config.CertData, config.KeyData, config.CertFile, config.KeyFile = nil, nil, certificate, key
	// client-go closes all connections of a client when the files of its certificate change, and the next test writes them.
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	return httpClient(t, config)
}

// httpClient returns a client with the certificate of a config.
func httpClient(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}
