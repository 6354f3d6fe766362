package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// testServer is a complete server that serves while a test runs.
type testServer struct {
	*testListeners
	server *Server
	api    *apiServer
	caller *http.Client
}

// newTestServer starts a server for an API server.
func newTestServer(t *testing.T, api *apiServer, configure func(*v1alpha1.ServerConfiguration)) *testServer {
	t.Helper()
	s := startTestServer(t, api.URL, configure)
	s.api = api
	return s
}

// startTestServer starts a server for the API server at a URL.
func startTestServer(
	t *testing.T, url string, configure func(*v1alpha1.ServerConfiguration), options ...func(*Options),
) *testServer {
	t.Helper()
	s := &testServer{testListeners: newTestListeners(t, nil)}
	s.close()
	config := s.config
	config.Cluster.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	write(t, config.Cluster.Kubeconfig, []byte(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}],
		"users": [{"name": "c", "user": {"token": "bearer-token-of-the-server"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}`, url)))
	config.Metrics.Address = "127.0.0.1:0"
	if configure != nil {
		configure(config)
	}
	var err error
	opts := Options{Logger: s.log.logger(), Version: "v1.2.3", Commit: "abcdef"}
	for _, change := range options {
		change(&opts)
	}
	s.server, err = New(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	s.listeners = s.server.listeners
	s.listeners.reload = time.Millisecond
	if s.server.webhooks != nil {
		s.server.webhooks.askVersion = time.Millisecond
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop, s.done = stop, make(chan error, 1)
	go func() { s.done <- s.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := s.ended(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if strings.Contains(s.log.String(), "bearer-token-of-the-server") {
			t.Error("the log has the server's token")
		}
	})
	s.caller = s.testListeners.caller(s.callers.client("kube-apiserver"))
	return s
}

// ready waits until /readyz succeeds.
func (s *testServer) ready() {
	s.t.Helper()
	eventually(s.t, "ready", func() bool {
		got, err := s.get(s.caller, "/readyz")
		return err == nil && got.status == 200
	})
}

// readiness returns /readyz?verbose.
func (s *testServer) readiness() (status int, body string) {
	s.t.Helper()
	got, err := s.get(s.caller, "/readyz?verbose")
	if err != nil {
		s.t.Fatal(err)
	}
	return got.status, got.body
}

// ask sends an access review for an object in namespace shop.
func (s *testServer) ask(user string, groups []string, verb, resource, name string) authorizationv1.SubjectAccessReviewStatus {
	s.t.Helper()
	review := authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "shop", Verb: verb, Version: "v1", Resource: resource, Name: name,
			},
		},
	}
	if resource == "resourceslices" {
		review.Spec.ResourceAttributes.Group, review.Spec.ResourceAttributes.Namespace = "resource.k8s.io", ""
	}
	var answer authorizationv1.SubjectAccessReview
	s.exchange("/authorize", review, &answer)
	return answer.Status
}

// askNode sends an access review for a node.
func (s *testServer) askNode(node, verb, resource, name string) authorizationv1.SubjectAccessReviewStatus {
	s.t.Helper()
	user, groups := nodeidentity.User(node)
	return s.ask(user, groups, verb, resource, name)
}

// token sends an admission review of a node's token request for a pod of shop and an audience; empty:
// the audience of the API server.
func (s *testServer) token(node, pod, uid, audience string) *admissionv1.AdmissionResponse {
	s.t.Helper()
	user, groups := nodeidentity.User(node)
	audiences := "[]"
	if audience != "" {
		audiences = fmt.Sprintf("[%q]", audience)
	}
	object := fmt.Sprintf(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": {"name": "default", "namespace": "shop"}, "spec": {"audiences": %s,
		"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": %q, "uid": %q}}}`, audiences, pod, uid)
	return s.admit(user, groups, "serviceaccounts", "token", "TokenRequest", object)
}

func (s *testServer) admit(
	user string, groups []string, resource, subresource, kind, object string,
) *admissionv1.AdmissionResponse {
	s.t.Helper()
	groupsJSON, err := json.Marshal(groups)
	if err != nil {
		s.t.Fatal(err)
	}
	group := ""
	if kind == "TokenRequest" {
		group = "authentication.k8s.io"
	}
	review := json.RawMessage(fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1",
		"kind": {"group": %q, "version": "v1", "kind": %q}, "resource": {"version": "v1", "resource": %q}, "subResource": %q,
		"name": "default", "namespace": "shop", "operation": "CREATE", "userInfo": {"username": %q, "groups": %s}, "object": %s}}`,
		group, kind, resource, subresource, user, groupsJSON, object))
	var answer admissionv1.AdmissionReview
	s.exchange("/admit", review, &answer)
	return answer.Response
}

func (s *testServer) exchange(path string, question, answer any) {
	s.t.Helper()
	text, err := json.Marshal(question)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := s.post(s.caller, path, string(text))
	if err != nil || got.status != 200 {
		s.t.Fatalf("%s: got %+v, %v", path, got, err)
	}
	if err := json.Unmarshal([]byte(got.body), answer); err != nil {
		s.t.Fatalf("%v in %s", err, got.body)
	}
}

// metric returns the value of a line of /metrics; empty if there is none.
func (s *testServer) metric(name string) string {
	s.t.Helper()
	address := s.server.metrics.listener.Addr()
	got, err := http.Get("http://" + address.String() + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// pod returns a pod of shop on a node that uses a secret and a token for the API server.
func pod(name, node, secret string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": "shop", "name": %q, "uid": %q},
		"spec": {"nodeName": %q, "serviceAccountName": "default", "volumes": [
			{"name": "s", "secret": {"secretName": %q}},
			{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}}`,
		name, "uid-"+name, node, secret)
}

func node(name string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q, "uid": %q}}`, name, "uid-"+name)
}

// shop returns an API server with two nodes, and pod web on node a.
func shop(t *testing.T) *apiServer {
	api := newAPIServer(t)
	api.set("nodes", node("a"))
	api.set("nodes", node("b"))
	api.set("pods", pod("web", "a", "db"))
	return api
}

func withoutWaits(c *v1alpha1.ServerConfiguration) {
	c.Authorization.FreshnessWait, c.Admission.FreshnessWait = metav1.Duration{}, metav1.Duration{}
}
