package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	ledgerv1alpha1 "github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// A machine joins: from evidence to node.
func TestAMachineJoins(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, nil).ready()
	token := s.join("worker-1")
	if again := s.join("worker-1"); again != token {
		t.Errorf("a retry got another token: %s and %s", token, again)
	}
	const entry = "alwaysallow-worker-1"
	if phase := s.phase(entry); phase != ledgerv1alpha1.Issued {
		t.Errorf("phase %s, want Issued", phase)
	}
	s.request("csr-1", token, "worker-1")
	if got := s.decided("csr-1"); got != "Approved ClientCertificateApproved" {
		t.Fatalf("the machine's request: %s", got)
	}
	s.issue("csr-1")
	eventually(t, "the ledger has the certificate", func() bool { return s.phase(entry) == ledgerv1alpha1.Certified })
	s.request("csr-2", token, "worker-1")
	if got := s.decided("csr-2"); got != "Denied TokenAlreadyUsed" {
		t.Errorf("a second key: %s", got)
	}
	s.put("/api/v1/nodes/worker-1", &corev1.Node{})
	eventually(t, "the ledger has the node", func() bool { return s.phase(entry) == ledgerv1alpha1.Registered })
	status, answer := s.ask(s.callers.client("node-authorizer-client"), "worker-1", "{}")
	if status != 403 || answer.Status.Allowed || answer.Status.Token != "" ||
		!strings.HasPrefix(answer.Status.Reason, "AlreadyRegistered: ") {
		t.Errorf("the same machine once more: got %d %+v", status, answer)
	}

	for name, want := range map[string]string{
		`node_authorizer_attestations_total{attestor="alwaysallow",code="TokenIssued",outcome="issued"}`:                "1",
		`node_authorizer_attestations_total{attestor="alwaysallow",code="TokenRepeated",outcome="repeated"}`:            "1",
		`node_authorizer_attestations_total{attestor="alwaysallow",code="AlreadyRegistered",outcome="refused"}`:         "1",
		`node_authorizer_certificate_requests_total{code="ClientCertificateApproved",kind="client",outcome="approved"}`: "1",
		`node_authorizer_certificate_requests_total{code="TokenAlreadyUsed",kind="client",outcome="denied"}`:            "1",
		`node_authorizer_ledger_entries{phase="Registered"}`:                                                            "1",
		`node_authorizer_ledger_entries{phase="Issued"}`:                                                                "0",
		`node_authorizer_approver_leader`: "1",
	} {
		eventually(t, name+" is "+want, func() bool { return s.metric(name) == want })
	}
	if s.metric(`node_authorizer_certificate_expiration_timestamp_seconds{file="`+s.certificate+`"}`) == "" {
		t.Error("the expiration of the certificate is not exported")
	}
	log := s.log.String()
	for text, times := range map[string]int{
		`"machine attested: token issued" "node"="worker-1" "instance"="worker-1" "address"="127.0.0.1" ` +
			`"attestor"="alwaysallow" "code"="TokenIssued"`: 1,
		`"machine refused" "node"="worker-1"`:                                                1,
		`"certificate request approved" "node"="worker-1" "request"="csr-1" "kind"="client"`: 1,
		`"certificate request denied" "node"="worker-1" "request"="csr-2"`:                   1,
		"WARNING: the attestor alwaysallow believes everything":                              1,
	} {
		if n := strings.Count(log, text); n != times {
			t.Errorf("logged %d times, want %d: %s", n, times, text)
		}
	}
	s.checkNoToken(token)
	if t.Failed() {
		t.Log(log)
	}
}

// checkNoToken checks that the secret half of a token is not in data that others can read.
func (s *joinServer) checkNoToken(token string) {
	s.t.Helper()
	_, secret, _ := strings.Cut(token, ".")
	metrics, err := read(http.Get(at(s.listeners.metrics, "/metrics")))
	if err != nil {
		s.t.Fatal(err)
	}
	for what, text := range map[string]string{
		"log": s.log.String(), "metrics": metrics.body, "readiness": s.probe().body,
	} {
		if strings.Contains(text, secret) {
			s.t.Errorf("the %s has the token", what)
		}
	}
	if !strings.Contains(metrics.body, "node_authorizer_attestations_total") {
		s.t.Error("the metrics are not those of the server")
	}
	history, err := s.cluster.History("/apis/node-authorizer.io/v1alpha1/nodeattestations/alwaysallow-worker-1")
	if err != nil || len(history) == 0 {
		s.t.Fatalf("the ledger has no entry: %v", err)
	}
	for _, version := range history {
		if text, err := json.Marshal(version); err != nil || strings.Contains(string(text), secret) {
			s.t.Errorf("the ledger has the token, %v", err)
		}
	}
}

// The test lists every kind of request to the API server: a server without webhooks does not read
// pods, and reads no Secret except the key.
func TestWhatJoiningReads(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, nil).ready()
	token := s.join("worker-1")
	s.request("csr-1", token, "worker-1")
	s.decided("csr-1")
	s.issue("csr-1")
	eventually(t, "the ledger has the certificate", func() bool {
		return s.phase("alwaysallow-worker-1") == ledgerv1alpha1.Certified
	})
	want := []string{
		"GET /api/v1/namespaces/kube-system/secrets/node-authorizer-key",
		"GET /api/v1/nodes",
		"GET /api/v1/nodes/NAME",
		"GET /apis/certificates.k8s.io/v1/certificatesigningrequests",
		"GET /apis/certificates.k8s.io/v1/certificatesigningrequests/NAME",
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/node-authorizer-approver",
		"GET /apis/node-authorizer.io/v1alpha1/nodeattestations",
		"GET /apis/node-authorizer.io/v1alpha1/nodeattestations/NAME",
		"POST /api/v1/namespaces/kube-system/secrets",
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
		"POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
		"POST /apis/node-authorizer.io/v1alpha1/nodeattestations",
		"PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/NAME/approval",
		"PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/node-authorizer-approver",
		"PUT /apis/node-authorizer.io/v1alpha1/nodeattestations/NAME/status",
	}
	for _, request := range s.asked.all() {
		if !slices.Contains(want, request) {
			t.Errorf("unexpected: %s", request)
		}
	}
	if got := s.asked.all(); !slices.Contains(got, want[8]) || !slices.Contains(got, want[12]) {
		t.Errorf("the requests were not seen: %q", got)
	}
}

func TestMachinesNeedACertificate(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, nil).ready()
	expired, key := s.callers.leaf("node-authorizer-client", x509.ExtKeyUsageClientAuth, time.Now().Add(-time.Minute))
	serving, servingKey := s.callers.leaf("node-authorizer-client", x509.ExtKeyUsageServerAuth, time.Now().Add(time.Hour))
	pair := func(certificate, key []byte) *tls.Certificate {
		t.Helper()
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		return &pair
	}
	for _, tc := range []struct {
		rule        string
		certificate *tls.Certificate
		status      int
		reason      string
	}{
		{"none", nil, 403, "ClientCertificateRequired: "},
		{"of another authority", newAuthority(t, "others").client("node-authorizer-client"), 403, "ClientCertificateInvalid: "},
		{"expired", pair(expired, key), 403, "ClientCertificateInvalid: "},
		{"for servers", pair(serving, servingKey), 403, "ClientCertificateInvalid: "},
		{"of another name", s.callers.client("kubelet"), 403, "ClientNameNotAllowed: "},
		{"the right one", s.callers.client("node-authorizer-client"), 200, ""},
	} {
		status, answer := s.ask(tc.certificate, "worker-1", "{}")
		allowed := status == 200
		if status != tc.status || !strings.HasPrefix(answer.Status.Reason, tc.reason) ||
			answer.Status.Allowed != allowed || (answer.Status.Token != "") != allowed {
			t.Errorf("%s: got %d %+v, want %d %s", tc.rule, status, answer, tc.status, tc.reason)
		}
	}
	for _, path := range []string{"/health", "/livez", "/readyz"} {
		got, err := s.testListeners.caller(nil).Get(at(s.listeners.bootstrap, path))
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != 200 || path == "/health" && got.Header.Get("Node-Authorizer-Version") != "v1.2.3" {
			t.Errorf("%s: got %d %v", path, got.StatusCode, got.Header)
		}
	}
}

// An authority is removed while a connection of one of its machines is open.
func TestAuthoritiesOfMachinesRotate(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, func(c *v1alpha1.ServerConfiguration) {
		c.Bootstrap.RateLimit.PerSource = v1alpha1.SourceLimit{PerSecond: 10000, Burst: 10000}
		c.Bootstrap.RateLimit.PerSecond, c.Bootstrap.RateLimit.Burst = 10000, 10000
	})
	s.ready()
	old := s.testListeners.caller(s.callers.client("node-authorizer-client"))
	ask := func() string {
		url := at(s.listeners.bootstrap, "/authorize/worker-1")
		got, err := read(old.Post(url, "application/json", strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		return got.body
	}
	if body := ask(); !strings.Contains(body, `"Allowed":true`) {
		t.Fatalf("got %s", body)
	}
	write(t, s.authorities, newAuthority(t, "new machines").pem)
	eventually(t, "the old authority is refused on the open connection", func() bool {
		return strings.Contains(ask(), "ClientCertificateInvalid")
	})
}

// The control plane starts after the server.
func TestJoiningStartsBeforeTheAPIServer(t *testing.T) {
	t.Parallel()
	asked := &requests{down: true}
	cluster := fakeapiserver.New(fakeapiserver.Options{Fault: asked.fault})
	t.Cleanup(cluster.Close)
	s := &joinServer{cluster: cluster, asked: asked}
	s.testServer = startTestServer(t, cluster.URL(), func(c *v1alpha1.ServerConfiguration) {
		onlyMachines(c)
		c.Bootstrap.Attestor, c.Bootstrap.AcceptAlwaysAllow = v1alpha1.AlwaysAllowAttestor, true
		c.Approver.Enabled = true
	})
	if got, err := read(s.testListeners.caller(nil).Get(at(s.listeners.bootstrap, "/livez"))); err != nil || got.status != 200 {
		t.Errorf("livez: got %+v, %v", got, err)
	}
	eventually(t, "the outage is noticed", func() bool {
		got := s.probe()
		return got.status == 503 &&
			strings.Contains(got.body, "[-]api-server failed: the API server does not answer: it answers with status 503") &&
			strings.Contains(got.body, "[-]ledger-sync failed: reading nodeattestations") &&
			strings.Contains(got.body, "[-]approver failed: ")
	})
	status, answer := s.ask(nil, "worker-1", "{}")
	if status != 503 || answer.Status.Token != "" || !strings.HasPrefix(answer.Status.Reason, "BootstrapUnavailable: ") {
		t.Errorf("a machine meanwhile: got %d %+v", status, answer)
	}
	asked.outage(false)
	s.ready()
	if status, answer := s.ask(nil, "worker-1", "{}"); status != 200 || answer.Status.Token == "" {
		t.Errorf("a machine afterwards: got %d %+v\n%s", status, answer, s.log.String())
	}
}

// A server that shuts down releases the lease of the approver.
func TestTheLeaseIsReleased(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, nil).ready()
	eventually(t, "it leads", func() bool { return s.metric("node_authorizer_approver_leader") == "1" })
	if s.holder() == "" {
		t.Error("it leads without the lease")
	}
	s.stop()
	if err := s.ended(); err != nil {
		t.Error(err)
	}
	if holder := s.holder(); holder != "" {
		t.Errorf("%s still has the lease", holder)
	}
}

func TestTheApproverWithoutOtherParts(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, func(c *v1alpha1.ServerConfiguration) { c.Bootstrap = v1alpha1.Bootstrap{} })
	if s.listeners.bootstrap != nil || s.listeners.webhook != nil {
		t.Fatal("it listens for more than probes and metrics")
	}
	eventually(t, "it is ready", func() bool {
		got, err := read(http.Get(at(s.listeners.metrics, "/readyz?verbose")))
		return err == nil && got.status == 200 &&
			strings.Contains(got.body, "[+]approver ok") && !strings.Contains(got.body, "attestor")
	})
	eventually(t, "it leads", func() bool { return s.metric("node_authorizer_approver_leader") == "1" })
}

// Every bootstrap token is in the group system:bootstrappers, whose requests kube-controller-manager
// approves in many clusters.
func TestOtherApproversAreWarnedOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule   string
		rights []string
		want   string
	}{
		{"tokens", []string{"nodeclient"}, "certificatesigningrequests/nodeclient"},
		{"nodes", []string{"selfnodeclient"}, "certificatesigningrequests/selfnodeclient"},
		{"no group", nil, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			asked := &requests{}
			cluster := fakeapiserver.New(fakeapiserver.Options{Fault: asked.fault, Allow: allowed(tc.rights...)})
			t.Cleanup(cluster.Close)
			s := startTestServer(t, cluster.URL(), func(c *v1alpha1.ServerConfiguration) {
				c.Webhook, c.Approver.Enabled = v1alpha1.Webhook{}, true
			})
			const review = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
			eventually(t, "it has asked", func() bool { return asked.count(review) == len(otherApprovals()) })
			warning := "WARNING: kube-controller-manager approves certificate requests"
			if tc.want != "" {
				eventually(t, "it warns", func() bool { return strings.Contains(s.log.String(), tc.want) })
			}
			s.stop()
			if err := s.ended(); err != nil {
				t.Error(err)
			}
			if n := strings.Count(s.log.String(), warning); n != len(tc.rights) {
				t.Errorf("warned %d times, want %d:\n%s", n, len(tc.rights), s.log.String())
			}
		})
	}
}

// A server that gives tokens warns even if another server approves, because its tokens would be valid
// for any name.
func TestOtherApproversAreWarnedOfWithoutAnApprover(t *testing.T) {
	t.Parallel()
	cluster := fakeapiserver.New(fakeapiserver.Options{Allow: allowed("nodeclient")})
	t.Cleanup(cluster.Close)
	s := startTestServer(t, cluster.URL(), func(c *v1alpha1.ServerConfiguration) {
		onlyMachines(c)
		c.Bootstrap.Attestor, c.Bootstrap.AcceptAlwaysAllow = v1alpha1.AlwaysAllowAttestor, true
	})
	eventually(t, "it warns", func() bool {
		return strings.Contains(s.log.String(), "certificatesigningrequests/nodeclient")
	})
	s.stop()
	if err := s.ended(); err != nil {
		t.Error(err)
	}
}

func TestInsecureSettingsAreReported(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.Bootstrap)
		want   string // empty: none
	}{
		{"the defaults of aws", func(*v1alpha1.Bootstrap) {}, ""},
		{"alwaysallow", func(b *v1alpha1.Bootstrap) { b.Attestor = v1alpha1.AlwaysAllowAttestor }, "believes everything"},
		{"signatures", func(b *v1alpha1.Bootstrap) {
			b.AWS.VerifySignature = false
		}, "signatures of identity documents are not verified"},
		{"source addresses", func(b *v1alpha1.Bootstrap) {
			b.AWS.VerifySourceAddress = false
		}, "whoever has seen a machine's identity document"},
		{"source addresses, and the caller signs a challenge", func(b *v1alpha1.Bootstrap) {
			b.AWS.VerifySourceAddress, b.AWS.CallerIdentity.Required = false, true
		}, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			config := v1alpha1.Defaults()
			config.Bootstrap.Address, config.Bootstrap.Attestor = ":10443", v1alpha1.AWSAttestor
			tc.change(&config.Bootstrap)
			var logged []string
			logger := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
			j := &join{config: config, logger: logger}
			j.warnOfInsecureSettings()
			if len(logged) != min(len(tc.want), 1) || !strings.Contains(strings.Join(logged, ""), tc.want) {
				t.Errorf("logged %q, want %q", logged, tc.want)
			}
		})
	}
}
