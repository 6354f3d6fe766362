package server

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	ledgerv1alpha1 "github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/client"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// joinServer is a server without webhooks where machines join a cluster.
type joinServer struct {
	*testServer
	cluster *fakeapiserver.Server
	asked   *requests
}

// requests records the requests to an API server.
type requests struct {
	mu   sync.Mutex
	seen map[string]int // by verb and path, without names
	down bool
	// forbidden is the end of paths that may not be read; empty for none.
	forbidden string
}

func (r *requests) fault(request *http.Request) fakeapiserver.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return fakeapiserver.Unavailable
	}
	if r.forbidden != "" && strings.HasSuffix(request.URL.Path, r.forbidden) {
		return fakeapiserver.Forbidden
	}
	names := regexp.MustCompile(`/(bootstrap-token-\w+|worker-\w+|alwaysallow-[\w-]+|csr-\w+)`)
	path := names.ReplaceAllString(request.URL.Path, "/NAME")
	if r.seen == nil {
		r.seen = map[string]int{}
	}
	r.seen[request.Method+" "+path]++
	return fakeapiserver.NoFault
}

func (r *requests) outage(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

func (r *requests) forbid(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forbidden = path
}

func (r *requests) count(request string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[request]
}

func (r *requests) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for request := range r.seen {
		all = append(all, request)
	}
	slices.Sort(all)
	return all
}

// newJoinServer starts a server with the attestor alwaysallow that requires client certificates.
func newJoinServer(t *testing.T, configure func(*v1alpha1.ServerConfiguration), options ...func(*Options)) *joinServer {
	t.Helper()
	return newJoinServerIn(t, &requests{}, configure, options...)
}

// newJoinServerIn does so in a cluster whose requests are recorded, and may fail from the beginning.
func newJoinServerIn(
	t *testing.T, asked *requests, configure func(*v1alpha1.ServerConfiguration), options ...func(*Options),
) *joinServer {
	t.Helper()
	cluster := fakeapiserver.New(fakeapiserver.Options{Fault: asked.fault, Allow: allowed("selfnodeserver")})
	t.Cleanup(cluster.Close)
	s := &joinServer{cluster: cluster, asked: asked}
	s.testServer = startTestServer(t, cluster.URL(), func(c *v1alpha1.ServerConfiguration) {
		authorities := c.Webhook.ClientCAFile
		onlyMachines(c)
		c.Bootstrap.ClientCAFile = authorities
		c.Bootstrap.Attestor, c.Bootstrap.AcceptAlwaysAllow = v1alpha1.AlwaysAllowAttestor, true
		c.Approver.Enabled = true
		c.Approver.LeaderElection.RetryPeriod = metav1.Duration{Duration: 100 * time.Millisecond}
		if configure != nil {
			configure(c)
		}
		if problems := v1alpha1.Validate(c); len(problems) > 0 {
			t.Fatal(problems)
		}
	}, options...)
	return s
}

// allowed answers SubjectAccessReviews: it allows some subresources.
func allowed(subresources ...string) func(map[string]any) bool {
	return func(spec map[string]any) bool {
		attributes, _ := spec["resourceAttributes"].(map[string]any)
		subresource, _ := attributes["subresource"].(string)
		return slices.Contains(subresources, subresource)
	}
}

// probe returns /readyz?verbose of the endpoint for machines.
func (s *joinServer) probe() response {
	s.t.Helper()
	got, err := read(s.testListeners.caller(nil).Get(at(s.listeners.bootstrap, "/readyz?verbose")))
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

func (s *joinServer) ready() *joinServer {
	s.t.Helper()
	eventually(s.t, "machines can join", func() bool { return s.probe().status == 200 })
	return s
}

// registration is the answer to a machine.
type registration struct {
	Status struct {
		Allowed       bool
		Token, Reason string
	}
}

// ask requests a token as a machine with a certificate, or without one.
func (s *joinServer) ask(certificate *tls.Certificate, node, body string) (status int, answer registration) {
	s.t.Helper()
	url := at(s.listeners.bootstrap, "/authorize/"+node)
	got, err := s.testListeners.caller(certificate).Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		s.t.Fatalf("%v in %d %s", err, got.StatusCode, text)
	}
	return got.StatusCode, answer
}

// join runs the client of a machine, and returns its token.
func (s *joinServer) join(node string) (token string) {
	s.t.Helper()
	dir := s.t.TempDir()
	certificate, key := s.callers.leaf("node-authorizer-client", x509.ExtKeyUsageClientAuth, time.Now().Add(time.Hour))
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": s.testListeners.server.pem}
	for name, text := range files {
		write(s.t, filepath.Join(dir, name), text)
	}
	kubeconfig := filepath.Join(dir, "bootstrap-kubeconfig")
	_, err := client.Run(s.t.Context(), client.Options{
		Collector: alwaysallow.NewCollector(), NodeName: node,
		ServiceURL: at(s.listeners.bootstrap, ""), ServiceCAFile: filepath.Join(dir, "ca.crt"),
		CertificateFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
		APIServerURL: "https://api.example.com", Kubeconfig: kubeconfig, Interval: 10 * time.Millisecond, Timeout: time.Minute,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	if token = regexp.MustCompile(`[a-z0-9]{6}\.[a-z0-9]{16}`).FindString(string(text)); token == "" {
		s.t.Fatalf("no token in\n%s", text)
	}
	return token
}

// request creates a certificate request with a token, as a kubelet does.
func (s *joinServer) request(name, token, node string) {
	s.t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node},
	}, newKey(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	id, _, _ := strings.Cut(token, ".")
	s.put(requestPath(name), &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		Username:   "system:bootstrap:" + id, Groups: []string{"system:bootstrappers", ledger.TokenGroup, "system:authenticated"},
	}})
}

func (s *joinServer) put(path string, object any) {
	s.t.Helper()
	if err := s.cluster.Put(path, object); err != nil {
		s.t.Fatal(err)
	}
}

func requestPath(name string) string {
	return "/apis/certificates.k8s.io/v1/certificatesigningrequests/" + name
}

// decided waits until a request has a decision, and returns it: "Denied WrongNodeName".
func (s *joinServer) decided(name string) (decision string) {
	s.t.Helper()
	eventually(s.t, "request "+name+" is decided", func() bool {
		csr := &certificatesv1.CertificateSigningRequest{}
		if found, err := s.cluster.Get(requestPath(name), csr); err != nil || !found {
			s.t.Fatalf("request %s: %v", name, err)
		}
		for _, c := range csr.Status.Conditions {
			decision = string(c.Type) + " " + c.Reason
		}
		return decision != ""
	})
	return decision
}

// issue signs an approved request, as kube-controller-manager does.
func (s *joinServer) issue(name string) {
	s.t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	if _, err := s.cluster.Get(requestPath(name), csr); err != nil {
		s.t.Fatal(err)
	}
	csr.Status.Certificate, _ = s.callers.leaf("system:node:worker-1", x509.ExtKeyUsageClientAuth, time.Now().Add(time.Hour))
	s.put(requestPath(name), csr)
}

func (s *joinServer) phase(entry string) ledgerv1alpha1.Phase {
	s.t.Helper()
	found := &ledgerv1alpha1.NodeAttestation{}
	if ok, err := s.cluster.Get("/apis/node-authorizer.io/v1alpha1/nodeattestations/"+entry, found); err != nil || !ok {
		s.t.Fatalf("entry %s: %v", entry, err)
	}
	return found.Phase()
}

// holder returns the identity of the holder of the approver's lease.
func (s *joinServer) holder() string {
	s.t.Helper()
	lease := &coordinationv1.Lease{}
	const path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/node-authorizer-approver"
	if _, err := s.cluster.Get(path, lease); err != nil {
		s.t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
