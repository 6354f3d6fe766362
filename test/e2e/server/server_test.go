package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// answering returns a server whose process is a handler.
func answering(t *testing.T, handler http.HandlerFunc) *Server {
	t.Helper()
	webhooks, metrics := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	t.Cleanup(webhooks.Close)
	t.Cleanup(metrics.Close)
	s := &Server{
		Address: strings.TrimPrefix(webhooks.URL, "https://"), MetricsAddress: strings.TrimPrefix(metrics.URL, "http://"),
		name: "one", dir: t.TempDir(),
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhooks.Certificate().Raw})
	if err := os.WriteFile(s.File("ca.crt"), authority, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadiness(t *testing.T) {
	for _, test := range []struct {
		rule    string
		status  int
		body    string
		refusal string
	}{
		{"200 is ready", http.StatusOK, "ok", ""},
		{
			"503 is not ready, and the error has the checks on one line", http.StatusServiceUnavailable,
			"[+]ping ok\n[-]pods failed\n", "the server one is not ready: 503 [+]ping ok [-]pods failed",
		},
		{"404 is not ready", http.StatusNotFound, "", "the server one is not ready: 404 "},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var paths []string
			s := answering(t, func(w http.ResponseWriter, r *http.Request) {
				paths = append(paths, r.URL.Path)
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			if got := errorText(s.Ready(t.Context())); got != test.refusal {
				t.Errorf("%q, want %q", got, test.refusal)
			}
			if !slices.Equal(paths, []string{"/readyz"}) {
				t.Errorf("asked for %v", paths)
			}
		})
	}
	t.Run("a server whose certificate the authority did not sign presents none", func(t *testing.T) {
		s := answering(t, func(http.ResponseWriter, *http.Request) {})
		if err := os.WriteFile(s.File("ca.crt"), newAuthority(t), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ServingCertificate(t.Context()); err == nil {
			t.Error("its certificate is accepted")
		}
	})
}

// newAuthority returns the certificate of an unused authority.
func newAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestMetrics(t *testing.T) {
	status := http.StatusOK
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("path " + r.URL.Path + "\n"))
	})
	if text, err := s.Metrics(t.Context()); err != nil || text != "path /metrics" {
		t.Errorf("the metrics are %q: %v", text, err)
	}
	status = http.StatusInternalServerError
	if text, err := s.Metrics(t.Context()); err == nil {
		t.Errorf("the answer 500 is accepted as metrics: %q", text)
	}
}

func TestPost(t *testing.T) {
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, " %s %s %q %s\n", r.Method, r.URL.Path, r.Header["Content-Type"], body)
	})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ rule, contentType, want string }{
		{"with a content type", "application/json", `POST /authorize ["application/json"] {}`},
		{"without a content type", "", `POST /authorize [] {}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, err := Post(t.Context(), client, "https://"+s.Address+"/authorize", test.contentType, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != http.StatusTeapot || got.Body != test.want || got.Header.Get("Retry-After") != "7" {
				t.Errorf("the answer is %d %q %v", got.Status, got.Body, got.Header)
			}
		})
	}
}

func TestServingCertificateIsThePresentedOne(t *testing.T) {
	s := answering(t, func(http.ResponseWriter, *http.Request) {})
	presented, err := s.ServingCertificate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(s.File("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if got := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: presented.Raw}); !slices.Equal(got, want) {
		t.Errorf("the certificate is %s", presented.Subject)
	}
}

func TestFilesAreReplacedAtomically(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, text := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(from, "a"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CopyFiles(to, map[string]string{"b": filepath.Join(from, "a")}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(to, "b")); err != nil || string(got) != text {
			t.Errorf("the file holds %q: %v", got, err)
		}
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v: %v", entries, err)
	}
	if err := CopyFiles(to, map[string]string{"b": filepath.Join(from, "missing")}); err == nil {
		t.Error("a missing file was copied")
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	path, authority, token := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	for _, file := range []string{authority, token} {
		if err := os.WriteFile(file, newAuthority(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteKubeconfig(path, "https://127.0.0.1:1", authority, &clientcmdapi.AuthInfo{TokenFile: token}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1" || config.CAFile != authority || config.BearerTokenFile != token {
		t.Errorf("the kubeconfig is read as %s %s %s", config.Host, config.CAFile, config.BearerTokenFile)
	}
}
