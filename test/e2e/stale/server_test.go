package stale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/e2e/faultproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// maxStaleness is the minimum of the configuration.
const maxStaleness = 90 * time.Second

const config = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
cluster:
  kubeconfig: %s
  maxStaleness: %s
webhook:
  address: %q
  certificateFile: %s
  keyFile: %s
  clientAuthentication: None
  serves: [Authorization, Admission, Authentication]
metrics:
  address: %q
iam:
  clusterID: stale
  region: eu-central-1
  sources: [ConfigMap]
  sessionCheck: None
`

// testServer is a server with its own connection to a control plane, its own service
// account, and a node, a pod and a secret. All of them have its name.
type testServer struct {
	*server.Server
	plane *plane
	name  string
	// apiServer is the address of the API server that it follows, and containment whether it follows NodeScopes and
	// Quarantines.
	apiServer   string
	containment bool
	// secret is the secret that the node reads.
	secret string
	proxy  *faultproxy.Proxy
	// client keeps its connections to the server.
	client *http.Client
}

func newServer(t *testing.T, p *plane, name string) *testServer {
	t.Helper()
	s := &testServer{plane: p, name: name, secret: name, apiServer: p.Plane.Server()}
	s.run(t)
	return s
}

// run starts the server until the test ends.
func (s *testServer) run(t *testing.T) {
	t.Helper()
	if err := s.start(t.Context()); err != nil {
		t.Fatalf("start the server of %s: %v", s.name, err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(), s.proxy.Close()); err != nil {
			t.Error(err)
		}
	})
}

func (s *testServer) start(ctx context.Context) error {
	var err error
	if s.Server, err = server.New(s.plane.Plane, "node-authorizer-"+s.name, filepath.Join(s.plane.dir, s.name)); err != nil {
		return err
	}
	if err := s.plane.relate(ctx, s.name); err != nil {
		return err
	}
	if err := s.plane.allow(ctx, s.name); err != nil {
		return err
	}
	if err := s.renewToken(ctx); err != nil {
		return err
	}
	if s.proxy, err = faultproxy.Listen(strings.TrimPrefix(s.apiServer, "https://")); err != nil {
		return err
	}
	if err := s.WriteKubeconfig("https://"+s.proxy.Address(), &clientcmdapi.AuthInfo{TokenFile: s.File("token")}); err != nil {
		return err
	}
	text := fmt.Sprintf(config, s.Kubeconfig(), maxStaleness, s.Address, s.File("tls.crt"), s.File("tls.key"), s.MetricsAddress)
	if s.containment {
		text += "containment: {nodeScopes: Enabled, quarantines: Enabled, maxQuarantinedNodes: \"3\"}\n"
	}
	if err := s.WriteConfig(text); err != nil {
		return err
	}
	if s.client, err = s.Client(); err != nil {
		return err
	}
	return s.Run(ctx, server.Command{Program: program})
}

// renewToken gives the server a token of a new account.
func (s *testServer) renewToken(ctx context.Context) error {
	token, err := s.plane.newToken(ctx, s.name)
	if err != nil {
		return err
	}
	partial := s.File("token.new")
	if err := os.WriteFile(partial, []byte(token), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, s.File("token"))
}

// unknown returns nil when the API server does not authenticate the server's token, and
// powerless when the server's user may not list pods.
func (s *testServer) unknown(ctx context.Context) error {
	return s.listing(ctx, apierrors.IsUnauthorized)
}

func (s *testServer) powerless(ctx context.Context) error {
	return s.listing(ctx, apierrors.IsForbidden)
}

// listing lists pods with the server's token, and expects an error.
func (s *testServer) listing(ctx context.Context, want func(error) bool) error {
	token, err := os.ReadFile(s.File("token"))
	if err != nil {
		return err
	}
	config := rest.AnonymousClientConfig(s.plane.AdminConfig())
	config.BearerToken = string(token)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{Limit: 1}); !want(err) {
		return fmt.Errorf("the API server answers %w", err)
	}
	return nil
}

// answer is the server's decision about its node and its secret.
type answer string

const (
	allowed answer = "allowed"
	refused answer = "refused"
	failed  answer = "error"
)

// ask sends the SubjectAccessReview of an API server: may the node read the secret?
func (s *testServer) ask(ctx context.Context) (answer, string, error) {
	body, err := json.Marshal(&authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:node:" + s.name, Groups: []string{"system:nodes", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Version: "v1", Resource: "secrets", Namespace: space, Name: s.secret,
			},
		},
	})
	if err != nil {
		return "", "", err
	}
	response, err := server.Post(ctx, s.client, "https://"+s.Address+"/authorize", "application/json", body)
	if err != nil {
		return "", "", err
	}
	var review authorizationv1.SubjectAccessReview
	if response.Status != http.StatusOK {
		return failed, response.Body, nil
	}
	if err := json.Unmarshal([]byte(response.Body), &review); err != nil {
		return "", "", err
	}
	switch {
	case review.Status.EvaluationError != "":
		return failed, review.Status.EvaluationError, nil
	case review.Status.Allowed:
		return allowed, review.Status.Reason, nil
	}
	return refused, review.Status.Reason, nil
}

// metric returns the value of a time series, or an empty text.
func (s *testServer) metric(ctx context.Context, series string) string {
	text, err := s.Metrics(ctx)
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
