package apiproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// newProxy returns a proxy before a server that counts its requests.
func newProxy(t *testing.T) (p *Proxy, client *http.Client, arrived *atomic.Int32) {
	t.Helper()
	arrived = &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile := file("tls.crt", "CERTIFICATE", certificate.Certificate[0])
	p, err = Listen(Options{Server: server.URL, CAFile: certFile, CertFile: certFile, KeyFile: file("tls.key", "PRIVATE KEY", key)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs}
	return p, &http.Client{Transport: transport}, arrived
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func isSecret(r *http.Request) bool { return r.URL.Path == "/secrets" }

func TestRequestsAreForwardedAndRecorded(t *testing.T) {
	p, client, arrived := newProxy(t)
	if err := get(t.Context(), client, p.Address()+"/secrets?limit=1"); err != nil {
		t.Fatal(err)
	}
	passed, want := p.Passed(), Request{Method: "GET", Path: "/secrets", Query: "limit=1", Status: http.StatusOK}
	if len(passed) != 1 || passed[0] != want || arrived.Load() != 1 {
		t.Errorf("passed %v, arrived %d", passed, arrived.Load())
	}
}

func TestHeldRequestHasNotArrived(t *testing.T) {
	p, client, arrived := newProxy(t)
	hold := p.HoldRequest(isSecret)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- get(ctx, client, p.Address()+"/secrets") }()
	<-hold.Held
	if err := get(t.Context(), client, p.Address()+"/nodes"); err != nil {
		t.Errorf("another request: %v", err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("there was an answer")
	}
	if n := arrived.Load(); n != 1 {
		t.Errorf("%d requests arrived, not only the other one", n)
	}
}

func TestHeldAnswerHasArrived(t *testing.T) {
	p, client, arrived := newProxy(t)
	hold := p.HoldAnswer(isSecret)
	done := make(chan error, 1)
	go func() { done <- get(t.Context(), client, p.Address()+"/secrets") }()
	<-hold.Held
	if n := arrived.Load(); n != 1 {
		t.Errorf("%d requests arrived, not one", n)
	}
	hold.Release()
	if err := <-done; err != nil {
		t.Errorf("after the release: %v", err)
	}
	if err := get(t.Context(), client, p.Address()+"/secrets"); err != nil {
		t.Errorf("the next one is held too: %v", err)
	}
}
