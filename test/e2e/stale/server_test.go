package stale

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/e2e/wire"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// maxStaleness is the shortest that the configuration takes.
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

// server is one that follows a control plane through a wire of its own, with the
// account, about the node, and by the pod and the secret of its name.
type server struct {
	*localplane.Program
	plane     *plane
	name, dir string
	// secret is the one that is asked about.
	secret           string
	address, metrics string
	wire             *wire.Wire
	client           *http.Client
}

func newServer(t *testing.T, p *plane, name string) *server {
	t.Helper()
	s := &server{plane: p, name: name, secret: name, dir: filepath.Join(p.dir, name)}
	if err := s.start(t.Context()); err != nil {
		t.Fatalf("start the server of %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(), s.wire.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) start(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
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
	for _, address := range []*string{&s.address, &s.metrics} {
		port, err := s.plane.TakePort()
		if err != nil {
			return err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	var err error
	if s.wire, err = wire.Listen(strings.TrimPrefix(s.plane.Server(), "https://")); err != nil {
		return err
	}
	if err := s.writeKubeconfig(); err != nil {
		return err
	}
	certificate, key, err := s.plane.ServingCertificate(s.name)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(config, s.kubeconfig(), maxStaleness, s.address, certificate, key, s.metrics)
	path := filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	authority, err := os.ReadFile(s.plane.CAFile())
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	s.client = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	s.Program, err = s.plane.AddProgram(ctx, "node-authorizer-"+s.name, localplane.ProgramOptions{
		Path: program, Args: []string{"server", "--config=" + path}, Ready: s.ready,
	})
	return err
}

func (s *server) kubeconfig() string { return filepath.Join(s.dir, "kubeconfig") }

func (s *server) writeKubeconfig() error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["it"] = &clientcmdapi.Cluster{Server: "https://" + s.wire.Address(), CertificateAuthority: s.plane.CAFile()}
	kubeconfig.AuthInfos["it"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(s.dir, "token")}
	kubeconfig.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	kubeconfig.CurrentContext = "it"
	return clientcmd.WriteToFile(*kubeconfig, s.kubeconfig())
}

// renewToken gives the server a token of a new account.
func (s *server) renewToken(ctx context.Context) error {
	token, err := s.plane.newToken(ctx, s.name)
	if err != nil {
		return err
	}
	partial := filepath.Join(s.dir, "token.new")
	if err := os.WriteFile(partial, []byte(token), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(s.dir, "token"))
}

// unknown returns nil when the API server takes the server's token for no user's, and
// powerless when it lets its user list nothing.
func (s *server) unknown(ctx context.Context) error { return s.listing(ctx, apierrors.IsUnauthorized) }

func (s *server) powerless(ctx context.Context) error { return s.listing(ctx, apierrors.IsForbidden) }

// listing lists pods as the server does, and wants an error.
func (s *server) listing(ctx context.Context, want func(error) bool) error {
	token, err := os.ReadFile(filepath.Join(s.dir, "token"))
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

// ready returns nil when the server says that it is ready, and else what it says.
func (s *server) ready(ctx context.Context) error {
	status, body, err := s.do(ctx, http.MethodGet, "https://"+s.address+"/readyz", nil)
	if err == nil && status != http.StatusOK {
		err = errors.New(strings.Join(strings.Fields(body), " "))
	}
	return err
}

// answer is what the server says about its node and its secret.
type answer string

const (
	allowed answer = "allowed"
	refused answer = "refused"
	failed  answer = "error"
)

// ask asks as an API server does whether the node may read the secret.
func (s *server) ask(ctx context.Context) (answer, string, error) {
	body, err := json.Marshal(&authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:node:" + s.name, Groups: []string{"system:nodes", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: space, Name: s.secret},
		},
	})
	if err != nil {
		return "", "", err
	}
	status, text, err := s.do(ctx, http.MethodPost, "https://"+s.address+"/authorize", body)
	if err != nil {
		return "", "", err
	}
	var review authorizationv1.SubjectAccessReview
	if status != http.StatusOK {
		return failed, text, nil
	}
	if err := json.Unmarshal([]byte(text), &review); err != nil {
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

// metric is the value of a time series; empty if there is none.
func (s *server) metric(ctx context.Context, series string) string {
	_, text, err := s.do(ctx, http.MethodGet, "http://"+s.metrics+"/metrics", nil)
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

func (s *server) do(ctx context.Context, method, url string, body []byte) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
