package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// machinesOn adds an endpoint for machines with a certificate of its own, in files next to the
// webhooks' certificate.
func machinesOn(c *v1alpha1.ServerConfiguration) (certificate, key string) {
	dir := filepath.Dir(c.Webhook.CertificateFile)
	certificate, key = filepath.Join(dir, "machines.crt"), filepath.Join(dir, "machines.key")
	c.Bootstrap.Address, c.Bootstrap.CertificateFile, c.Bootstrap.KeyFile = "127.0.0.1:0", certificate, key
	return certificate, key
}

// machinesWithTheSameCertificate adds an endpoint for machines with the webhooks' certificate.
func machinesWithTheSameCertificate(c *v1alpha1.ServerConfiguration) {
	c.Bootstrap.Address = "127.0.0.1:0"
	c.Bootstrap.CertificateFile, c.Bootstrap.KeyFile = c.Webhook.CertificateFile, c.Webhook.KeyFile
}

// onlyMachines makes the endpoint for machines the only one.
func onlyMachines(c *v1alpha1.ServerConfiguration) {
	machinesWithTheSameCertificate(c)
	c.Webhook = v1alpha1.Webhook{}
}

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

func failing(name string) check {
	return check{name, func() (string, error) { return "", errNoAnswer }}
}

// at returns the URL of a path at an endpoint.
func at(e *endpoint, path string) string {
	scheme := "https://"
	if e.certificates == nil {
		scheme = "http://"
	}
	return scheme + e.listener.Addr().String() + path
}

// Each endpoint reports its own readiness; the endpoint of metrics reports on all.
func TestReadinessOfEachEndpoint(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		c.Metrics.Address = "127.0.0.1:0"
		machinesWithTheSameCertificate(c)
	})
	s.serve(parts{
		ready:    []check{{"graph-sync", func() (string, error) { return "", nil }}},
		machines: says("token"), metrics: says("numbers"),
		joinReady: []check{failing("ledger-sync")},
	})
	client := s.caller(s.callers.client("kube-apiserver"))
	const (
		webhooks = "[+]graph-sync ok\n[+]certificates ok\n"
		machines = "[-]ledger-sync failed: it has not answered yet\n[+]bootstrap-certificates ok\n"
		failed   = "[+]shutdown ok\nreadyz check failed\n"
	)
	for _, tc := range []struct {
		endpoint *endpoint
		path     string
		status   int
		want     string
	}{
		{s.listeners.webhook, "/readyz", 200, webhooks + "[+]shutdown ok\nreadyz check passed\n"},
		{s.listeners.bootstrap, "/readyz", 503, machines + failed},
		{s.listeners.metrics, "/readyz", 503, webhooks + machines + failed},
		{s.listeners.metrics, "/readyz/webhook", 200, webhooks + "[+]shutdown ok\nreadyz check passed\n"},
		{s.listeners.metrics, "/readyz/bootstrap", 503, machines + failed},
	} {
		got, err := read(client.Get(at(tc.endpoint, tc.path+"?verbose")))
		if err != nil || got.status != tc.status || got.body != tc.want {
			t.Errorf("%s: got %d %q, %v; want %d %q", tc.endpoint.name, got.status, got.body, err, tc.status, tc.want)
		}
		if got, err := read(client.Get(at(tc.endpoint, "/livez"))); err != nil || got.status != 200 {
			t.Errorf("%s: livez: got %+v, %v", tc.endpoint.name, got, err)
		}
	}
	if got, err := read(client.Get(at(s.listeners.bootstrap, "/authorize/worker-1"))); err != nil || got.body != "token" {
		t.Errorf("machines: got %+v, %v", got, err)
	}
	if got, err := read(client.Get(at(s.listeners.bootstrap, "/metrics"))); err != nil || got.body == "numbers" {
		t.Errorf("machines read metrics: got %+v, %v", got, err)
	}
}

func TestBootstrapWithoutWebhooks(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, onlyMachines)
	s.serve(parts{machines: says("token")})
	if s.listeners.webhook != nil || s.listeners.metrics != nil {
		t.Error("there are endpoints without an address")
	}
	for _, path := range []string{"/livez", "/readyz", "/authorize/worker-1"} {
		if got, err := read(s.caller(nil).Get(at(s.listeners.bootstrap, path))); err != nil || got.status != 200 {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
}

// The server waits for missing certificate files of machines, but not of the webhooks.
func TestTheServerWaitsForTheCertificateOfMachines(t *testing.T) {
	t.Parallel()
	var certificate, key string
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		certificate, key = machinesOn(c)
		c.Metrics.Address = "127.0.0.1:0"
	})
	s.serve(parts{machines: says("token"), metrics: says("numbers")})
	client := s.caller(nil)
	if _, err := client.Get(at(s.listeners.bootstrap, "/livez")); err == nil {
		t.Error("a handshake without a certificate")
	}
	got, err := read(client.Get(at(s.listeners.metrics, "/readyz")))
	const waiting = "[-]bootstrap-certificates failed: waiting for certificate files: read bootstrap.certificateFile: open "
	if err != nil || got.status != 503 || !strings.Contains(got.body, waiting+certificate) {
		t.Errorf("readyz: got %+v, %v", got, err)
	}
	if got, err := s.post(s.caller(s.callers.client("kube-apiserver")), "/authorize", "question"); err != nil || got.status != 200 {
		t.Errorf("the webhooks meanwhile: got %+v, %v", got, err)
	}
	certificateText, keyText := s.server.server()
	write(t, certificate, certificateText)
	write(t, key, keyText)
	eventually(t, "machines are served", func() bool {
		got, err := read(client.Get(at(s.listeners.bootstrap, "/readyz")))
		return err == nil && got.status == 200
	})
	if log := s.log.String(); !strings.Contains(log, "waiting for certificate files") || strings.Contains(log, "cannot be used") {
		t.Errorf("the log has\n%s", log)
	}
	if n := s.events.failures(); n != 0 {
		t.Errorf("%d failures are counted while the server waits for files", n)
	}
}

func TestWaitingForCertificatesEnds(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		machinesOn(c)
		c.Bootstrap.CertificateWait = metav1.Duration{Duration: 10 * time.Millisecond}
	})
	s.serve(parts{machines: says("token")})
	err := s.ended()
	if err == nil || !strings.Contains(err.Error(), "waited 10ms for certificate files: read bootstrap.certificateFile: ") ||
		!strings.Contains(err.Error(), "bootstrap.certificateWait") {
		t.Errorf("got %v", err)
	}
}

func TestTheServerDoesNotWaitForInvalidFiles(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	defer s.close()
	for _, tc := range []struct {
		rule      string
		configure func(*v1alpha1.ServerConfiguration)
		want      string
	}{
		{"missing, and no time to wait", func(c *v1alpha1.ServerConfiguration) {
			machinesOn(c)
			c.Bootstrap.CertificateWait = metav1.Duration{}
		}, "read bootstrap.certificateFile: open "},
		{"invalid", func(c *v1alpha1.ServerConfiguration) {
			certificate, key := machinesOn(c)
			write(t, certificate, []byte("nothing"))
			write(t, key, []byte("nothing"))
		}, "use bootstrap.certificateFile "},
		{"the address in use", func(c *v1alpha1.ServerConfiguration) {
			machinesWithTheSameCertificate(c)
			c.Bootstrap.Address = s.listeners.webhook.listener.Addr().String()
		}, "listen on bootstrap.address: "},
	} {
		config := *s.config
		tc.configure(&config)
		config.Webhook.Address = "127.0.0.1:0"
		other, err := newListeners(&config, s.log.logger(), s.events)
		if err == nil {
			other.close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.rule, err, tc.want)
		}
	}
}

// The certificate of one endpoint is replaced, and the certificate of the other is not.
func TestCertificatesOfMachinesRotate(t *testing.T) {
	t.Parallel()
	var certificate, key string
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		certificate, key = machinesOn(c)
		for from, to := range map[string]string{c.Webhook.CertificateFile: certificate, c.Webhook.KeyFile: key} {
			text, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			write(t, to, text)
		}
	})
	s.serve(parts{machines: says("token")})
	others := newAuthority(t, "other servers")
	certificateText, keyText := others.server()
	write(t, certificate, certificateText)
	write(t, key, keyText)
	client := callerWith(&tls.Config{RootCAs: pool(others)}, nil)
	t.Cleanup(client.CloseIdleConnections)
	eventually(t, "the new certificate is used", func() bool {
		_, err := read(client.Get(at(s.listeners.bootstrap, "/livez")))
		return err == nil
	})
	if got, err := s.get(s.caller(s.callers.client("kube-apiserver")), "/livez"); err != nil || got.status != 200 {
		t.Errorf("webhooks: got %+v, %v", got, err)
	}
}

// A shutdown completes the requests in flight on every endpoint.
func TestDrainOfAllEndpoints(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, func(c *v1alpha1.ServerConfiguration) {
		machinesWithTheSameCertificate(c)
	})
	started, finish := make(chan struct{}, 2), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}
		<-finish
		_, _ = io.WriteString(w, "answer")
	})
	s.serve(parts{webhooks: map[string]http.Handler{"/authorize": slow}, machines: slow})
	answers := make(chan error, 2)
	for _, ask := range []func() (response, error){
		func() (response, error) {
			return s.post(s.caller(s.callers.client("kube-apiserver")), "/authorize", "")
		},
		func() (response, error) {
			return read(s.caller(nil).Get(at(s.listeners.bootstrap, "/authorize/worker-1")))
		},
	} {
		go func() {
			got, err := ask()
			if err == nil && got.body != "answer" {
				err = errNoAnswer
			}
			answers <- err
		}()
	}
	<-started
	<-started
	s.stop()
	for _, e := range s.endpoints() {
		eventually(t, e.name+" is closed", func() bool {
			_, err := net.Dial("tcp", e.listener.Addr().String())
			return err != nil
		})
	}
	close(finish)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a request in flight: %v", err)
		}
	}
	if err := s.ended(); err != nil {
		t.Error(err)
	}
}

// A machine that sends slowly, or sends nothing, is cut off.
func TestTimeLimitsOfMachines(t *testing.T) {
	t.Parallel()
	l := machineLimits(15 * time.Second)
	if l.header > 5*time.Second || l.read > 10*time.Second || l.idle > 30*time.Second ||
		l.headerBytes > 8<<10 || l.write < 15*time.Second {
		t.Errorf("got %+v", l)
	}
	s := newTestListeners(t, onlyMachines)
	server := s.listeners.bootstrap.server
	if server.ReadHeaderTimeout != l.header || server.ReadTimeout != l.read ||
		server.IdleTimeout != l.idle || server.WriteTimeout != l.write {
		t.Errorf("the endpoint has other limits: %+v", server)
	}
	s.serve(parts{machines: says("token")})
	request, err := http.NewRequest(http.MethodGet, at(s.listeners.bootstrap, "/livez"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Padding", strings.Repeat("x", 64<<10))
	client := s.caller(nil)
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	if got, err := read(client.Do(request)); err == nil && got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a huge header: got %+v", got)
	}
}
