package controller_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// testCluster is a cluster in which approvers run.
type testCluster struct {
	t      *testing.T
	api    *fakeapiserver.Server
	client kubernetes.Interface
	ledger *ledger.Client
	// known is the copy that the approver started last decides from.
	known *ledger.Cache
}

func newTestCluster(t *testing.T, opts fakeapiserver.Options) *testCluster {
	t.Helper()
	fault := opts.Fault
	opts.Fault = func(r *http.Request) fakeapiserver.Fault {
		if strings.Contains(r.URL.Path, "/secrets") {
			t.Errorf("the approver asks for %s %s, and has no right to any Secret", r.Method, r.URL.Path)
		}
		if fault == nil {
			return fakeapiserver.NoFault
		}
		return fault(r)
	}
	api := fakeapiserver.New(opts)
	t.Cleanup(api.Close)
	client, err := kubernetes.NewForConfig(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := ledger.NewClient(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &testCluster{t: t, api: api, client: client, ledger: entries}
}

// start runs an approver until the test ends or the returned function is called.
func (s *testCluster) start(opts controller.Options) (stop func()) {
	s.t.Helper()
	known := ledger.NewCache(s.ledger)
	known.LimitAge(opts.MaxStaleness, opts.Clock)
	opts.Client, opts.Ledger, opts.Known = s.client, s.ledger, known
	s.known = known
	c, err := controller.New(opts)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { known.Run(ctx) })
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			s.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	s.t.Cleanup(stop)
	return stop
}

func (s *testCluster) put(path string, object any) {
	s.t.Helper()
	if err := s.api.Put(path, object); err != nil {
		s.t.Fatal(err)
	}
}

func entryPath(name string) string {
	return "/apis/node-authorizer.io/v1alpha1/nodeattestations/" + name
}

func requestPath(name string) string {
	return "/apis/certificates.k8s.io/v1/certificatesigningrequests/" + name
}

// machine creates a ledger entry that names a token.
func (s *testCluster) machine(name, node, token string, change ...func(*v1alpha1.NodeAttestation)) *v1alpha1.NodeAttestation {
	s.t.Helper()
	entry := &v1alpha1.NodeAttestation{Spec: v1alpha1.NodeAttestationSpec{
		Provider: "aws", InstanceID: name, NodeName: node, TokenID: token,
		Names: []string{node}, Addresses: []string{"10.0.0.7"},
		AttestedTime: metav1.Now(), TokenExpiration: metav1.NewTime(time.Now().Add(5 * time.Minute)),
	}}
	for _, f := range change {
		f(entry)
	}
	s.put(entryPath(name), entry)
	return s.entry(name)
}

func (s *testCluster) entry(name string) *v1alpha1.NodeAttestation {
	s.t.Helper()
	entry := &v1alpha1.NodeAttestation{}
	if found, err := s.api.Get(entryPath(name), entry); err != nil || !found {
		s.t.Fatalf("entry %s: %v", name, err)
	}
	return entry
}

// change changes an entry.
func (s *testCluster) change(name string, change func(*v1alpha1.NodeAttestation)) {
	s.t.Helper()
	entry := s.entry(name)
	change(entry)
	s.put(entryPath(name), entry)
}

// bound binds an entry's token to a key.
func bound(key string) func(*v1alpha1.NodeAttestation) {
	return func(e *v1alpha1.NodeAttestation) {
		e.Status.Binding = &v1alpha1.TokenBinding{TokenID: e.Spec.TokenID, PublicKey: key}
	}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// pkcs10 returns a request for a node with names and addresses.
func pkcs10(t *testing.T, key crypto.Signer, node string, sans ...string) []byte {
	t.Helper()
	subject := pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + node}
	template := &x509.CertificateRequest{Subject: subject}
	for _, san := range sans {
		if a, err := netip.ParseAddr(san); err == nil {
			template.IPAddresses = append(template.IPAddresses, a.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, san)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// withToken returns the request of a bootstrap token for a node's client certificate.
func withToken(t *testing.T, token string, key crypto.Signer, node string) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pkcs10(t, key, node), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Usages:   []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		Username: "system:bootstrap:" + token, Groups: []string{"system:bootstrappers", ledger.TokenGroup, "system:authenticated"},
	}}
}

// ofNode returns the request of a node: a renewal, or with names one for a serving certificate.
func ofNode(t *testing.T, node string, sans ...string) *certificatesv1.CertificateSigningRequest {
	user, groups := nodeidentity.User(node)
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pkcs10(t, newKey(t), node, sans...), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		Usages:   []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		Username: user, Groups: groups,
	}}
	if len(sans) > 0 {
		csr.Spec.SignerName = certificatesv1.KubeletServingSignerName
		csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	}
	return csr
}

func (s *testCluster) request(name string) *certificatesv1.CertificateSigningRequest {
	s.t.Helper()
	csr := &certificatesv1.CertificateSigningRequest{}
	if found, err := s.api.Get(requestPath(name), csr); err != nil || !found {
		s.t.Fatalf("request %s: %v", name, err)
	}
	return csr
}

// decision returns the type and the reason of a request's condition: "Approved RenewalApproved";
// empty if there is none.
func decision(csr *certificatesv1.CertificateSigningRequest) string {
	for _, c := range csr.Status.Conditions {
		return string(c.Type) + " " + c.Reason
	}
	return ""
}

// await waits until a request has a decision, and checks it.
func (s *testCluster) await(name, want string) {
	s.t.Helper()
	s.until("request "+name+" is decided", func() bool { return decision(s.request(name)) != "" })
	if got := decision(s.request(name)); got != want {
		s.t.Errorf("request %s: %s, want %s (%v)", name, got, want, s.request(name).Status.Conditions)
	}
}

// until waits for a condition.
func (s *testCluster) until(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// issue signs an approved request, as kube-controller-manager does.
func (s *testCluster) issue(name string, end time.Time) {
	s.t.Helper()
	csr := s.request(name)
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Fatal(err)
	}
	authority := newKey(s.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: request.Subject, NotBefore: end.Add(-time.Hour), NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, authority)
	if err != nil {
		s.t.Fatal(err)
	}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.put(requestPath(name), csr)
}

// events is an observer that records events.
type events struct {
	mu      sync.Mutex
	decided []controller.Event
	leads   int
	tooOld  atomic.Int64
}

func (e *events) Decided(event controller.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.decided = append(e.decided, event)
}

func (e *events) TooOld() { e.tooOld.Add(1) }

func (e *events) Leading(leads bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if leads {
		e.leads++
	}
}

// of returns the events of a request: "approve ClientCertificateApproved", or "error".
func (e *events) of(name string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var reported []string
	for _, event := range e.decided {
		switch {
		case event.Request != name:
		case event.Err != nil:
			reported = append(reported, "error")
		default:
			reported = append(reported, fmt.Sprintf("%v %s", event.Outcome, event.Code))
		}
	}
	return reported
}
