package localplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAuthorizationByWebhook tests a plane with a webhook instead of the Node authorizer
// and NodeRestriction. The webhook starts between kube-apiserver and its clients.
func TestAuthorizationByWebhook(t *testing.T) {
	webhook := &nodeWebhook{nodes: []string{"system:node:web-1"}}
	server := httptest.NewUnstartedServer(webhook)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "authorization.yaml")
	kubeconfig := filepath.Join(t.TempDir(), "webhook.kubeconfig")

	plane := startPlane(t, Options{
		Dir:                 t.TempDir(),
		AuthorizationConfig: config,
		Prepare: func(p *Plane) error {
			certFile, keyFile, err := p.ClientCertificate("webhook-caller", "kube-apiserver")
			if err != nil {
				return err
			}
			writeFile(t, config, fmt.Sprintf(authorizationConfig, kubeconfig))
			writeFile(t, kubeconfig, fmt.Sprintf(webhookKubeconfig, server.Listener.Addr(), p.CAFile(), certFile, keyFile))
			return nil
		},
		OnAPIServer: func(_ context.Context, p *Plane) error {
			certFile, keyFile, err := p.ServingCertificate("webhook")
			if err != nil {
				return err
			}
			certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				return err
			}
			authority, err := os.ReadFile(p.CAFile())
			if err != nil {
				return err
			}
			callers := x509.NewCertPool()
			callers.AppendCertsFromPEM(authority)
			server.TLS = &tls.Config{
				Certificates: []tls.Certificate{certificate},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    callers,
			}
			server.StartTLS()
			return nil
		},
	})

	t.Run("a node that the webhook allows joins", func(t *testing.T) {
		web := addNode(t, plane, "web-1", NodeOptions{})
		// NodeRestriction would refuse a label of this name.
		labelled := []byte(`{"metadata":{"labels":{"node-restriction.kubernetes.io/pool":"payments"}}}`)
		_, err := nodeClient(t, web).CoreV1().Nodes().Patch(t.Context(), "web-1", "application/merge-patch+json", labelled,
			metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("a node that the webhook refuses gets only a certificate", func(t *testing.T) {
		other := addNode(t, plane, "web-2", NodeOptions{NoWait: true})
		err := poll(t.Context(), func(context.Context) error {
			_, err := other.Config()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = nodeClient(t, other).CoreV1().Nodes().Get(t.Context(), "web-1", metav1.GetOptions{})
		wantForbidden(t, err)
		if !strings.Contains(err.Error(), "not a node of the test") {
			t.Errorf("the webhook's reason is not in %v", err)
		}
	})
}

const authorizationConfig = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: RBAC
  name: rbac
- type: Webhook
  name: nodes
  webhook:
    timeout: 3s
    authorizedTTL: 1s
    unauthorizedTTL: 1s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo:
      type: KubeConfigFile
      kubeConfigFile: %s
    matchConditions:
    - expression: "'system:nodes' in request.groups"
`

const webhookKubeconfig = `
apiVersion: v1
kind: Config
clusters:
- name: webhook
  cluster: {server: "https://%s/authorize", certificate-authority: %q}
users:
- name: kube-apiserver
  user: {client-certificate: %q, client-key: %q}
contexts:
- name: webhook
  context: {cluster: webhook, user: kube-apiserver}
current-context: webhook
`

// nodeWebhook allows everything to some nodes and nothing to others.
type nodeWebhook struct{ nodes []string }

func (w *nodeWebhook) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	review.Status.Allowed = slices.Contains(w.nodes, review.Spec.User)
	if !review.Status.Allowed {
		review.Status.Reason = "not a node of the test"
	}
	out.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(out).Encode(review); err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
	}
}
