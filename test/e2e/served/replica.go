package served

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/test/e2e/wire"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// Replica is one server.
type Replica struct {
	*localplane.Program
	// Watches carries what the server asks kube-apiserver.
	Watches *wire.Wire

	name, dir, address, metrics string
	authority                   string
	certificates                int
}

func newReplica(p *localplane.Plane, name, dir string) (*Replica, error) {
	r := &Replica{name: name, dir: filepath.Join(dir, name), authority: p.CAFile()}
	for _, address := range []*string{&r.address, &r.metrics} {
		port, err := p.TakePort()
		if err != nil {
			return nil, err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	var err error
	r.Watches, err = wire.Listen(hostOf(p.Server()))
	return r, err
}

func (r *Replica) start(ctx context.Context, p *localplane.Plane, program string) error {
	var err error
	r.Program, err = p.AddProgram(ctx, r.name, localplane.ProgramOptions{
		Path:  program,
		Args:  []string{"server", r.ConfigArgument()},
		Ready: r.Ready,
	})
	return err
}

// Ready returns nil when the server says that it is ready.
func (r *Replica) Ready(ctx context.Context) error {
	response, err := r.get(ctx, "https://"+r.address+"/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %s", r.name, strings.TrimSpace(string(body)))
	}
	return nil
}

// ServingCertificate is the certificate that the server shows now.
func (r *Replica) ServingCertificate(ctx context.Context) (*x509.Certificate, error) {
	response, err := r.get(ctx, "https://"+r.address+"/livez")
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	return response.TLS.PeerCertificates[0], nil
}

// Metrics are those of the server as it tells them to Prometheus.
func (r *Replica) Metrics(ctx context.Context) (string, error) {
	response, err := r.get(ctx, "http://"+r.metrics+"/metrics")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// get makes a connection of its own, so the answer is that of the server that
// listens now.
func (r *Replica) get(ctx context.Context, url string) (*http.Response, error) {
	authority, err := os.ReadFile(r.authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("the plane's authority is not a certificate")
	}
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}

// ConfigArgument is the argument that names the server's config file, by which
// its process can be told from others.
func (r *Replica) ConfigArgument() string {
	return "--config=" + filepath.Join(r.dir, "config.yaml")
}
