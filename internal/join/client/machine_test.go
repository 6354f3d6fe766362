package client

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
)

// aToken is the token that the services here return. No line and no error may contain it.
const aToken = "abc123.0123456789abcdef"

// machine is a machine that wants to join, with its service.
type machine struct {
	t       *testing.T
	folder  string
	options Options
	service *httptest.Server

	mu    sync.Mutex
	asked []string // "METHOD /path body"
	lines []string // reported
}

// newMachine starts a service with a handler for POST /authorize/.
func newMachine(t *testing.T, answer http.HandlerFunc) *machine {
	t.Helper()
	m := &machine{t: t, folder: t.TempDir()}
	m.service = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := readAll(r)
		m.mu.Lock()
		m.asked = append(m.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+body))
		m.mu.Unlock()
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		answer(w, r)
	}))
	m.service.Config.ErrorLog = quiet()
	m.service.StartTLS()
	t.Cleanup(m.service.Close)
	m.options = Options{
		Collector: collector{"worker-1"}, ServiceURL: m.service.URL, ServiceCAFile: m.path("ca.crt"),
		APIServerURL: "https://api.example.com:6443", Kubeconfig: m.path("kubelet/bootstrap-kubeconfig"),
		Interval: time.Millisecond, Timeout: time.Minute,
		Report: func(line string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.lines = append(m.lines, line)
		},
	}
	m.write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.service.Certificate().Raw}))
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.folder, name) }

func (m *machine) write(name string, content []byte) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), content, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// run runs the client, and checks that it does not print the token.
func (m *machine) run() (Result, error) {
	m.t.Helper()
	result, err := Run(m.t.Context(), m.options)
	m.checkNoToken(err)
	return result, err
}

func (m *machine) checkNoToken(err error) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	_, secret, _ := strings.Cut(aToken, ".")
	if text := fmt.Sprintf("%v %#v %q", err, err, m.lines); strings.Contains(text, secret) {
		m.t.Errorf("the token is printed: %s", text)
	}
}

// files returns the names in the folder of the kubeconfig.
func (m *machine) files() []string {
	m.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(m.options.Kubeconfig))
	if err != nil {
		m.t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// grant answers with the token.
func grant(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `{"Spec":{"NodeName":"worker-1","RemoteAddr":"192.0.2.7:4711","Request":"e30="},`+
		`"Status":{"Allowed":true,"Token":"`+aToken+`","Reason":""}}`)
}

// collector is a provider's collector whose evidence contains the challenge.
type collector struct{ name string }

func (c collector) NodeName(context.Context) (string, error) { return c.name, nil }

func (c collector) Collect(_ context.Context, about attest.Binding) ([]byte, error) {
	return fmt.Appendf(nil, `{"Challenge":%q}`, about.Challenge), nil
}

// inMemory connects the client to a handler without a network, so that synctest can advance
// the clock. A nil handler cannot be reached.
type inMemory struct{ handler http.Handler }

func (i inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.handler == nil {
		return nil, fmt.Errorf("dial tcp: connection refused")
	}
	markConnected(r)
	recorder := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.handler.ServeHTTP(recorder, r)
	}()
	select {
	case <-done:
		return recorder.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// offline returns a client of the machine with a handler instead of the service.
func (m *machine) offline(handler http.Handler) *client {
	m.t.Helper()
	c, err := newClient(m.options)
	if err != nil {
		m.t.Fatal(err)
	}
	c.service.http.Transport = inMemory{handler}
	return c
}
