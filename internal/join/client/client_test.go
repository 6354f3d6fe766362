package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func readAll(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return string(body)
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// markConnected calls the hook of a request's tracer for a connection.
func markConnected(r *http.Request) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
}

func TestTheKubeconfigIsThatOfAKubelet(t *testing.T) {
	m := newMachine(t, grant)
	result, err := m.run()
	if err != nil || result != (Result{NodeName: "worker-1"}) {
		t.Fatalf("got %+v, error %v", result, err)
	}
	info, err := os.Stat(m.options.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if got := m.files(); !slices.Equal(got, []string{"bootstrap-kubeconfig"}) {
		t.Errorf("the folder has %q", got)
	}
	// Load it as kubelet does.
	loaded, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: m.options.Kubeconfig}).Load()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://api.example.com:6443" || config.BearerToken != aToken {
		t.Errorf("host %s, token of the right value: %v", config.Host, config.BearerToken == aToken)
	}
	authorities, err := os.ReadFile(m.options.ServiceCAFile)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.CAData, authorities) || config.CAFile != "" || config.Insecure {
		t.Errorf("unexpected authorities: %s", config.CAData)
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		t.Error(err)
	}
	if want := []string{"GET /challenge", `POST /authorize/worker-1 {"Challenge":""}`}; !slices.Equal(m.asked, want) {
		t.Errorf("asked %q, want %q", m.asked, want)
	}
}

func TestAnExistingKubeconfigIsNotChanged(t *testing.T) {
	m := newMachine(t, grant)
	m.write("kubelet/bootstrap-kubeconfig", []byte("theirs"))
	m.options.ServiceCAFile = "no-such-file"
	if result, err := m.run(); err != nil || !result.Existed {
		t.Fatalf("got %+v, error %v", result, err)
	}
	if content, err := os.ReadFile(m.options.Kubeconfig); err != nil || string(content) != "theirs" {
		t.Errorf("it is %q now, error %v", content, err)
	}
	if len(m.asked) > 0 {
		t.Errorf("the service was asked %q", m.asked)
	}
}

func TestAKubeconfigThatAppearsDuringTheRunIsNotChanged(t *testing.T) {
	var m *machine
	m = newMachine(t, func(w http.ResponseWriter, r *http.Request) {
		m.write("kubelet/bootstrap-kubeconfig", []byte("theirs"))
		grant(w, r)
	})
	if result, err := m.run(); err != nil || !result.Existed {
		t.Fatalf("got %+v, error %v", result, err)
	}
	if content, err := os.ReadFile(m.options.Kubeconfig); err != nil || string(content) != "theirs" {
		t.Errorf("it is %q now, error %v", content, err)
	}
	if got := m.files(); !slices.Equal(got, []string{"bootstrap-kubeconfig"}) {
		t.Errorf("the folder has %q", got)
	}
}

func TestOtherFilesAreNotAcceptedAsAKubeconfig(t *testing.T) {
	for rule, prepare := range map[string]func(path string) error{
		"an empty file":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to nothing": func(path string) error { return os.Symlink("nothing", path) },
		"a file as a folder": func(path string) error {
			return os.WriteFile(filepath.Dir(path)+"/file", []byte("x"), 0o600)
		},
	} {
		t.Run(rule, func(t *testing.T) {
			m := newMachine(t, grant)
			m.options.Kubeconfig = m.path("bootstrap-kubeconfig")
			if err := prepare(m.options.Kubeconfig); err != nil {
				t.Fatal(err)
			}
			if rule == "a file as a folder" {
				m.options.Kubeconfig = m.path("file/bootstrap-kubeconfig")
			}
			if result, err := m.run(); err == nil {
				t.Errorf("got %+v", result)
			}
			if len(m.asked) > 0 {
				t.Errorf("the service was asked %q", m.asked)
			}
		})
	}
}

func TestOtherFilesThatAppearDuringTheRunAreNotAccepted(t *testing.T) {
	for rule, test := range map[string]struct {
		kubeconfig string
		appear     func(path string) error
		want       string
	}{
		"an empty file": {
			"kubeconfig", func(path string) error { return os.WriteFile(path, nil, 0o600) }, "exists but is empty",
		},
		"a link to nothing": {
			"kubeconfig", func(path string) error { return os.Symlink("nothing", path) }, "symbolic link",
		},
		"a path of a new folder": {"folder/", func(string) error { return nil }, "is not a file"},
	} {
		t.Run(rule, func(t *testing.T) {
			var m *machine
			m = newMachine(t, func(w http.ResponseWriter, r *http.Request) {
				if err := test.appear(m.options.Kubeconfig); err != nil {
					t.Error(err)
				}
				grant(w, r)
			})
			m.options.Kubeconfig = m.folder + "/" + test.kubeconfig
			if result, err := m.run(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, error %v, want %s", result, err, test.want)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	const url = "the URL of the bootstrap service"
	for _, test := range []struct {
		change func(*machine)
		want   string
	}{
		{func(m *machine) { m.options.ServiceURL = "" }, url + " is missing"},
		{func(m *machine) { m.options.ServiceURL = "http://x" }, url + ` is "http://x": want https://HOST:PORT`},
		{func(m *machine) { m.options.ServiceURL = "https://u:p@x" }, url + ": want no user, query or fragment"},
		{func(m *machine) { m.options.ServiceURL = "http://u:p@x" }, url + ": want no user, query or fragment"},
		{func(m *machine) { m.options.ServiceURL = "https://u:p@x:port" }, url + `: invalid port ":port" after host`},
		{
			func(m *machine) { m.options.APIServerURL = "api:6443" },
			`the URL of the API server is "api:6443": want https://HOST:PORT`,
		},
		{func(m *machine) { m.options.APIServerURL = "https://" }, `the URL of the API server is "https://": want https://HOST:PORT`},
		{func(m *machine) { m.options.Kubeconfig = "" }, "no kubeconfig file to write is given"},
		{func(m *machine) { m.options.Timeout = 0 }, "the timeout is 0s: want more than zero"},
		{func(m *machine) { m.options.Interval = -time.Second }, "the interval is -1s: want more than zero"},
		{func(m *machine) { m.options.NodeName = "Worker_1" }, `"Worker_1" cannot be a node name: `},
		{func(m *machine) { m.options.Collector = collector{"../nodes"} }, `"../nodes" cannot be a node name: `},
		{
			func(m *machine) { m.options.ServiceCAFile = "" },
			"no file with the certificate authorities of the bootstrap service is given",
		},
		{
			func(m *machine) { m.options.ServiceCAFile = "no-such-file" },
			"reading certificate authorities: open no-such-file: no such file or directory",
		},
		{func(m *machine) { m.write("ca.crt", []byte("x")) }, "reading certificate authorities: "},
		{func(m *machine) {
			m.write("api.crt", []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
			m.options.APIServerCAFile = m.path("api.crt")
		}, "reading certificate authorities: "},
		{
			func(m *machine) { m.options.KeyFile = "tls.key" },
			"a client certificate needs both its certificate file and its key file",
		},
		{
			func(m *machine) { m.options.KeyFile, m.options.CertificateFile = "tls.key", "tls.crt" },
			"reading the client certificate: open tls.crt: no such file or directory",
		},
	} {
		t.Run(test.want, func(t *testing.T) {
			m := newMachine(t, grant)
			test.change(m)
			if _, err := m.run(); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error: %v\nwant   %s", err, test.want)
			}
			if slices.ContainsFunc(m.asked, func(a string) bool { return strings.HasPrefix(a, "POST") }) {
				t.Errorf("the service was asked %q", m.asked)
			}
		})
	}
}

func TestTheURLMayEndWithAuthorize(t *testing.T) {
	for _, end := range []string{"", "/", "/authorize", "/authorize/", "/join", "/join/authorize"} {
		m := newMachine(t, grant)
		m.options.ServiceURL += end
		if _, err := m.run(); err != nil {
			t.Errorf("%q: %v", end, err)
			continue
		}
		want := strings.TrimSuffix(strings.TrimSuffix(end, "/"), "/authorize") + "/authorize/worker-1"
		if got := strings.Fields(m.asked[1])[1]; got != want {
			t.Errorf("%q: asked %s, want %s", end, got, want)
		}
	}
}

func TestTheGivenNameIsAskedFor(t *testing.T) {
	m := newMachine(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"Status":{"Allowed":true,"Token":%q}}`, aToken)
	})
	m.options.NodeName = "node-9.example.com"
	if result, err := m.run(); err != nil || result.NodeName != "node-9.example.com" {
		t.Fatalf("got %+v, error %v", result, err)
	}
	if !strings.HasPrefix(m.asked[1], "POST /authorize/node-9.example.com ") {
		t.Errorf("asked %q", m.asked)
	}
}

func TestEvidenceAnswersTheChallenge(t *testing.T) {
	m := newMachine(t, grant)
	handler := m.service.Config.Handler
	m.service.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/challenge" {
			fmt.Fprint(w, `{"Challenge":"c-1"}`)
			return
		}
		handler.ServeHTTP(w, r)
	})
	if _, err := m.run(); err != nil {
		t.Fatal(err)
	}
	if want := []string{`POST /authorize/worker-1 {"Challenge":"c-1"}`}; !slices.Equal(m.asked, want) {
		t.Errorf("asked %q, want %q", m.asked, want)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := newMachine(t, grant)
	m := newMachine(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.service.URL+"/authorize/worker-1", http.StatusTemporaryRedirect)
	})
	_, err := m.run()
	if refused := new(Refused); !errors.As(err, &refused) || refused.Status != http.StatusTemporaryRedirect {
		t.Errorf("error %v", err)
	}
	if len(elsewhere.asked) > 0 {
		t.Errorf("elsewhere was asked %q", elsewhere.asked)
	}
}

func TestTheServiceIsAuthenticated(t *testing.T) {
	t.Run("its certificate is signed by another authority", func(t *testing.T) {
		m := newMachine(t, grant)
		certificate, _ := selfSigned(t, "other")
		m.write("ca.crt", certificate)
		m.cannotReach("certificate signed by unknown authority")
	})
	t.Run("its certificate is for another name", func(t *testing.T) {
		m := newMachine(t, grant)
		m.options.ServiceURL = strings.Replace(m.service.URL, "127.0.0.1", "localhost", 1)
		m.cannotReach("not localhost")
	})
	t.Run("it speaks only TLS 1.1", func(t *testing.T) {
		m := newMachine(t, grant)
		old := httptest.NewUnstartedServer(m.service.Config.Handler)
		old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
		old.Config.ErrorLog = quiet()
		old.StartTLS()
		defer old.Close()
		m.options.ServiceURL = old.URL
		m.cannotReach("protocol version")
	})
}

// cannotReach runs the client until it gives up.
func (m *machine) cannotReach(why string) {
	m.t.Helper()
	m.options.Timeout = 20 * time.Millisecond // the result does not depend on the duration
	_, err := m.run()
	if gaveUp := new(GaveUp); !errors.As(err, &gaveUp) || gaveUp.Connected || !strings.Contains(err.Error(), why) {
		m.t.Errorf("error %v, want one without a connection for %q", err, why)
	}
	if len(m.asked) > 0 {
		m.t.Errorf("the service was asked %q", m.asked)
	}
}

func TestTheClientCertificateIsSent(t *testing.T) {
	var shown string
	m := newMachine(t, func(w http.ResponseWriter, r *http.Request) {
		shown = r.TLS.PeerCertificates[0].Subject.CommonName
		grant(w, r)
	})
	m.service.TLS.ClientAuth = tls.RequireAnyClientCert
	certificate, key := selfSigned(t, "node-authorizer-client")
	m.write("tls.crt", certificate)
	m.write("tls.key", key)
	m.options.CertificateFile, m.options.KeyFile = m.path("tls.crt"), m.path("tls.key")
	if _, err := m.run(); err != nil {
		t.Fatal(err)
	}
	if shown != "node-authorizer-client" {
		t.Errorf("shown: %q", shown)
	}
}

func TestTheAPIServerMayHaveOtherAuthorities(t *testing.T) {
	m := newMachine(t, grant)
	certificate, key := selfSigned(t, "kubernetes")
	m.write("api.crt", slices.Concat(key, certificate))
	m.options.APIServerCAFile = m.path("api.crt")
	if _, err := m.run(); err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.LoadFromFile(m.options.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.Clusters[clusterName].CertificateAuthorityData; !slices.Equal(got, certificate) {
		t.Errorf("the authorities are %s", got)
	}
}

func TestATokenIsNotPrinted(t *testing.T) {
	for _, verb := range []string{"%v", "%s", "%+v", "%#v"} {
		if got := fmt.Sprintf(verb, token(aToken)); got != "(a token)" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

// selfSigned returns a certificate and its key, PEM.
func selfSigned(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return certificate, key
}
