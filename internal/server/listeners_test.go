package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// events is a certificateObserver that records its calls.
type events struct {
	mu      sync.Mutex
	expires map[string]time.Time
	failed  int
}

func (e *events) CertificateExpires(file string, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.expires == nil {
		e.expires = map[string]time.Time{}
	}
	e.expires[filepath.Base(file)] = at
}

func (e *events) CertificateReloadFailed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed++
}

func (e *events) failures() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// testListeners are listeners that serve while a test runs.
type testListeners struct {
	*listeners
	t           *testing.T
	events      *events
	log         *logLines
	server      *authority // of the server's certificate
	callers     *authority
	certificate string // paths
	key         string
	authorities string
	stop        context.CancelFunc
	done        chan error
}

// logLines records a log.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text.WriteString(prefix + args + "\n")
	}, funcr.Options{})
}

// Write implements io.Writer.
func (l *logLines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newTestListeners returns listeners; configure may change its configuration, and serve
// starts it.
func newTestListeners(t *testing.T, configure func(*v1alpha1.ServerConfiguration)) *testListeners {
	t.Helper()
	dir := t.TempDir()
	s := &testListeners{
		t: t, events: &events{}, log: &logLines{},
		server: newAuthority(t, "servers"), callers: newAuthority(t, "callers"),
		certificate: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"),
		authorities: filepath.Join(dir, "ca.crt"),
	}
	certificate, key := s.server.server()
	write(t, s.certificate, certificate)
	write(t, s.key, key)
	write(t, s.authorities, s.callers.pem)
	config := v1alpha1.Defaults()
	config.Webhook.Address, config.Metrics.Address = "127.0.0.1:0", ""
	w := &config.Webhook
	w.CertificateFile, w.KeyFile, w.ClientCAFile = s.certificate, s.key, s.authorities
	w.AllowedClientNames = []string{"kube-apiserver"}
	if configure != nil {
		configure(config)
	}
	var err error
	if s.listeners, err = newListeners(config, s.log.logger(), s.events); err != nil {
		t.Fatal(err)
	}
	s.reload = time.Millisecond
	return s
}

func (s *testListeners) serve(p parts) *testListeners {
	if p.webhooks == nil && s.listeners.webhook != nil {
		p.webhooks = map[string]http.Handler{"/authorize": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		})}
	}
	ctx, stop := context.WithCancel(s.t.Context())
	s.stop, s.done = stop, make(chan error, 1)
	go func() { s.done <- s.listeners.serve(ctx, p) }()
	s.t.Cleanup(func() {
		stop()
		<-s.done
	})
	return s
}

// ended waits until serve has returned.
func (s *testListeners) ended() error {
	err := <-s.done
	s.done <- err
	return err
}

// caller returns an HTTP client with a certificate, or without one.
func (s *testListeners) caller(certificate *tls.Certificate) *http.Client {
	client := callerWith(&tls.Config{RootCAs: pool(s.server)}, certificate)
	s.t.Cleanup(client.CloseIdleConnections) // otherwise a drain waits a second
	return client
}

func callerWith(config *tls.Config, certificate *tls.Certificate) *http.Client {
	if certificate != nil {
		// Send the certificate even if the server asks for certificates of other authorities.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate, nil
		}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

func pool(authorities ...*authority) *x509.CertPool {
	p := x509.NewCertPool()
	for _, a := range authorities {
		p.AddCert(a.certificate)
	}
	return p
}

func (s *testListeners) url(path string) string {
	return "https://" + s.listeners.webhook.listener.Addr().String() + path
}

// response is the part of a response that tests check.
type response struct {
	status int
	body   string
	proto  string
	tls    *tls.ConnectionState
}

func (s *testListeners) get(client *http.Client, path string) (response, error) {
	return read(client.Get(s.url(path)))
}

func (s *testListeners) post(client *http.Client, path, body string) (response, error) {
	return read(client.Post(s.url(path), "application/json", bytes.NewReader([]byte(body))))
}

func read(r *http.Response, err error) (response, error) {
	if err != nil {
		return response{}, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return response{r.StatusCode, string(body), r.Proto, r.TLS}, err
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
		time.Sleep(10 * time.Millisecond) // many tests wait at the same time, most for an answer over TLS
	}
}

func TestCallersNeedACertificate(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil).serve(parts{})
	known := s.caller(s.callers.client("kube-apiserver"))
	for _, tc := range []struct {
		rule    string
		client  *http.Client
		path    string
		status  int
		message string
	}{
		{"no certificate", s.caller(nil), "/authorize", 0, ""},
		{"no certificate, health", s.caller(nil), "/livez", 0, ""},
		{"another name", s.caller(s.callers.client("kubelet")), "/authorize", 0, ""},
		{"the API server's name", known, "/authorize", 200, "question"},
		{"health", known, "/livez", 200, "ok"},
		{"readiness", known, "/readyz", 200, "ok"},
		{"other paths", s.caller(s.callers.client("kube-apiserver")), "/metrics", 404, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var got response
			var err error
			if tc.path == "/authorize" {
				got, err = s.post(tc.client, tc.path, "question")
			} else {
				got, err = s.get(tc.client, tc.path)
			}
			if tc.status == 0 {
				if err == nil {
					t.Errorf("got %+v, want the handshake to fail", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.status != tc.status || !strings.Contains(got.body, tc.message) {
				t.Errorf("got %d %q, want %d %q", got.status, got.body, tc.status, tc.message)
			}
			if got.proto != "HTTP/2.0" {
				t.Errorf("spoke %s, want HTTP/2.0", got.proto)
			}
		})
	}
}

func TestHandshakesRefuseBadCertificates(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil).serve(parts{})
	expired, key := s.callers.leaf("kube-apiserver", x509.ExtKeyUsageClientAuth, time.Now().Add(-time.Minute))
	expiredPair, err := tls.X509KeyPair(expired, key)
	if err != nil {
		t.Fatal(err)
	}
	serving, key := s.callers.server()
	servingPair, err := tls.X509KeyPair(serving, key)
	if err != nil {
		t.Fatal(err)
	}
	oldVersion := &tls.Config{RootCAs: pool(s.server), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	for _, tc := range []struct {
		rule   string
		client *http.Client
	}{
		{"of another authority", s.caller(newAuthority(t, "others").client("kube-apiserver"))},
		{"of the server's own authority", s.caller(s.server.client("kube-apiserver"))},
		{"expired", s.caller(&expiredPair)},
		{"for servers", s.caller(&servingPair)},
		{"TLS 1.1", callerWith(oldVersion, s.callers.client("kube-apiserver"))},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got, err := s.post(tc.client, "/authorize", ""); err == nil {
				t.Errorf("got %d %q, want the handshake to fail", got.status, got.body)
			}
		})
	}
}

// TestWhoMayCall puts a question without a certificate, and with one of the authority that names a node.
func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule                string
		how                 v1alpha1.ClientAuthentication
		names               []string
		nobody, named, node int // the statuses of answers; 0 if the handshake fails
	}{
		{"who is named", v1alpha1.ClientCertificateRequired, []string{"kube-apiserver"}, 0, 200, 0},
		{"nobody is named", v1alpha1.ClientCertificateRequired, nil, 0, 0, 0},
		{"every certificate", v1alpha1.AnyClientCertificate, nil, 0, 200, 200},
		{"everybody", v1alpha1.NoClientAuthentication, nil, 200, 200, 200},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
				c.Webhook.ClientAuthentication, c.Webhook.AllowedClientNames = tc.how, tc.names
				if tc.how == v1alpha1.NoClientAuthentication {
					c.Webhook.ClientCAFile = ""
				}
			}).serve(parts{})
			for _, caller := range []struct {
				certificate *tls.Certificate
				want        int
			}{{nil, tc.nobody}, {s.callers.client("kube-apiserver"), tc.named}, {s.callers.client("system:node:a"), tc.node}} {
				got, err := s.post(s.caller(caller.certificate), "/authorize", "question")
				if (err != nil) != (caller.want == 0) || got.status != caller.want {
					t.Errorf("got %+v, %v; want %d", got, err, caller.want)
				}
			}
		})
	}
}

func TestHTTP1IsSupported(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil).serve(parts{})
	client := s.caller(s.callers.client("kube-apiserver"))
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	if got, err := s.post(client, "/authorize", "question"); err != nil || got.status != 200 || got.proto != "HTTP/1.1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestInvalidFilesAreErrorsAtStart(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	defer s.close()
	start := func(configure func(*v1alpha1.Webhook)) error {
		config := *s.config
		configure(&config.Webhook)
		other, err := newListeners(&config, s.log.logger(), s.events)
		if err == nil {
			other.close()
		}
		return err
	}
	broken := filepath.Join(t.TempDir(), "broken.pem")
	write(t, broken, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	for _, tc := range []struct {
		rule string
		file func(*v1alpha1.Webhook)
		want string
	}{
		{"no such file", func(w *v1alpha1.Webhook) { w.KeyFile = "no-such.key" }, "read webhook.keyFile: open no-such.key"},
		{"key in place of the certificate", func(w *v1alpha1.Webhook) { w.CertificateFile = w.KeyFile }, "use webhook.certificateFile"},
		{
			"authorities without a certificate", func(w *v1alpha1.Webhook) { w.ClientCAFile = w.KeyFile },
			"it holds no certificate in PEM form",
		},
		{"broken authorities", func(w *v1alpha1.Webhook) { w.ClientCAFile = broken }, "certificate 1: x509:"},
		{
			"address in use", func(w *v1alpha1.Webhook) { w.Address = s.listeners.webhook.listener.Addr().String() },
			"listen on webhook.address",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if err := start(tc.file); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestReadinessNamesEachCheck(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	cause := errors.New("waits for\npods")
	s := newTestListeners(t, nil).serve(parts{ready: []check{{"graph-sync", func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return "3 kinds", cause
	}}}})
	client := s.caller(s.callers.client("kube-apiserver"))
	for _, path := range []string{"/readyz", "/readyz?verbose"} {
		got, err := s.get(client, path)
		const want = "[-]graph-sync failed: waits for pods\n[+]certificates ok\n[+]shutdown ok\nreadyz check failed\n"
		if err != nil || got.status != 503 || got.body != want {
			t.Errorf("%s: got %d %q, %v; want 503 %q", path, got.status, got.body, err, want)
		}
	}
	mu.Lock()
	cause = nil
	mu.Unlock()
	got, err := s.get(client, "/readyz?verbose")
	const want = "[+]graph-sync ok: 3 kinds\n[+]certificates ok\n[+]shutdown ok\nreadyz check passed\n"
	if err != nil || got.status != 200 || got.body != want {
		t.Errorf("got %d %q, %v; want 200 %q", got.status, got.body, err, want)
	}
	if got, err := s.post(client, "/livez", ""); err != nil || got.status != 405 {
		t.Errorf("POST /livez: got %d, %v; want 405", got.status, err)
	}
}

func TestPanicsAreLogged(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no answer to that") })
	s := newTestListeners(t, nil).serve(parts{webhooks: map[string]http.Handler{"/authorize": handler}})
	if got, err := s.post(s.caller(s.callers.client("kube-apiserver")), "/authorize", ""); err == nil {
		t.Errorf("got %+v, want an error", got)
	}
	if _, err := s.get(s.caller(newAuthority(t, "others").client("kube-apiserver")), "/livez"); err == nil {
		t.Error("an unknown caller was admitted")
	}
	eventually(t, "it is logged", func() bool {
		log := s.log.String()
		return strings.Contains(log, "a request was not answered") && strings.Contains(log, "no answer to that") &&
			strings.Contains(log, "listeners_test.go")
	})
	if log := s.log.String(); strings.Contains(log, "handshake") {
		t.Errorf("failed handshakes are logged, which anybody can cause:\n%s", log)
	}
}

func TestMetricsHaveTheirOwnPort(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) { c.Metrics.Address = "127.0.0.1:0" })
	s.serve(parts{metrics: says("numbers")})
	address := s.listeners.metrics.listener.Addr()
	got, err := read(http.Get("http://" + address.String() + "/metrics"))
	if err != nil || got.status != 200 || got.body != "numbers" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := read(http.Get("http://" + address.String() + "/authorize")); err != nil || got.status != 404 {
		t.Errorf("/authorize on the port for metrics: got %+v, %v", got, err)
	}
}

func seconds(n time.Duration) metav1.Duration { return metav1.Duration{Duration: n * time.Second} }
