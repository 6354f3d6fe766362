package attackpaths

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	reviewpkg "github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// scoper is a webhook that decides by NodeScopes alone, before the Node authorizer and RBAC.
type scoper struct {
	server *httptest.Server
	dir    string
	policy atomic.Pointer[nodescope.Policy]
	world  *world

	mu sync.Mutex
	// authorizer is over the state of the cluster when it was read last.
	authorizer *nodescope.Authorizer
}

// startScoped starts a control plane whose API server asks a scoper.
func startScoped(ctx context.Context) (*world, error) {
	dir, err := os.MkdirTemp("", "node-authorizer-scopes-")
	if err != nil {
		return nil, err
	}
	s := &scoper{dir: dir}
	s.server = httptest.NewUnstartedServer(s)
	config, kubeconfig := filepath.Join(dir, "authorization.yaml"), filepath.Join(dir, "webhook.kubeconfig")
	w, err := start(ctx, kubeversion.Latest, []string{web1, pay1}, localplane.Options{
		AuthorizationConfig: config, NodeRestriction: true,
		ExtraArgs: map[localplane.Component][]string{
			localplane.ControllerManager: {"--controllers=*,-garbage-collector-controller,-namespace-controller"},
		},
		Prepare: func(p *localplane.Plane) error {
			text := fmt.Sprintf(scopedKubeconfig, s.server.Listener.Addr(), p.CAFile())
			if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
				return err
			}
			return os.WriteFile(config, []byte(fmt.Sprintf(scopedAuthorization, kubeconfig)), 0o600)
		},
		OnAPIServer: func(_ context.Context, p *localplane.Plane) error { return s.serve(p) },
	})
	if w == nil {
		return nil, errors.Join(err, s.close())
	}
	w.scoper, s.world = s, w
	return w, err
}

func (s *scoper) close() error {
	s.server.Close()
	return os.RemoveAll(s.dir)
}

const scopedAuthorization = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: scopes
  webhook:
    timeout: 10s
    authorizedTTL: 1ms
    unauthorizedTTL: 1ms
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
    matchConditions:
    - expression: "request.user.startsWith('system:serviceaccount:shop:')"
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`

const scopedKubeconfig = `
apiVersion: v1
kind: Config
clusters:
- name: webhook
  cluster: {server: "https://%s/authorize", certificate-authority: %q}
users: [{name: kube-apiserver, user: {}}]
contexts:
- name: webhook
  context: {cluster: webhook, user: kube-apiserver}
current-context: webhook
`

func (s *scoper) serve(p *localplane.Plane) error {
	certFile, keyFile, err := p.ServingCertificate("webhook")
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return err
	}
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.server.StartTLS()
	return nil
}

// read reads the cluster, which the scopes' rules about pods and nodes depend on.
func (s *scoper) read(ctx context.Context) (*nodescope.Authorizer, error) {
	state, err := source.List(ctx, s.world.AdminConfig(), source.LiveOptions{Inventory: true})
	if err != nil {
		return nil, err
	}
	evaluator, err := evaluate.New(ctx, state, evaluate.Options{Features: kubeversion.For(s.world.minor)})
	if err != nil {
		return nil, err
	}
	node := nodeauthz.New(state.Graph, evaluator.Features)
	return nodescope.New(&s.policy, state.Graph, node, evaluator.Restriction), nil
}

// decide reads the cluster again before it refuses what depends on it.
func (s *scoper) decide(ctx context.Context, req *access.Request) (nodescope.Explanation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.authorizer != nil {
		answer := s.authorizer.Explain(req)
		if answer.Decision != verdict.Deny || answer.Uses == 0 {
			return answer, nil
		}
	}
	authorizer, err := s.read(ctx)
	if err != nil {
		return nodescope.Explanation{}, err
	}
	s.authorizer = authorizer
	return authorizer.Explain(req), nil
}

func (s *scoper) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{}
	if policy := s.policy.Load(); policy != nil {
		req, _ := reviewpkg.Attributes(&review.Spec)
		answer, err := s.decide(in.Context(), &req)
		if err != nil {
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
			return
		}
		review.Status.Denied, review.Status.Reason = answer.Decision == verdict.Deny, answer.Reason.Message
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(&review)
}

func (w *world) enforce(policy *nodescope.Policy) {
	w.scoper.mu.Lock()
	defer w.scoper.mu.Unlock()
	w.scoper.authorizer = nil
	w.scoper.policy.Store(policy)
}

// policy is what is enforced.
func (w *world) policy() *nodescope.Policy {
	if w.scoper == nil {
		return nil
	}
	return w.scoper.policy.Load()
}

// nodeOfToken is the node of a token where scopes matter; empty if it has none.
func (w *world) nodeOfToken(token string) string {
	var claims struct {
		Kubernetes struct{ Node struct{ Name string } } `json:"kubernetes.io"`
	}
	parts := strings.Split(token, ".")
	if w.policy() == nil || len(parts) != 3 {
		return ""
	}
	if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Node.Name
}
