package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// authority is a CA.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	a.pem, _, a.certificate, a.key = sign(t, name, nil)
	return a
}

// leaf returns a certificate with its key in PEM form.
func (a *authority) leaf(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	certificate, key, _, _ = sign(t, name, a)
	return certificate, key
}

func sign(t *testing.T, name string, by *authority) (certificate, keyText []byte, parsed *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if by == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), parsed, key
}

// cluster is an API server and the network to it, both in memory, so that they use
// the clock of a bubble.
type cluster struct {
	authority *authority
	// serving is the API server's certificate.
	serving atomic.Pointer[tls.Certificate]
	server  *http.Server
	// accepted are the connections of clients.
	accepted chan net.Conn
	closed   chan struct{}
	// silent is whether the network drops everything.
	silent atomic.Bool
	dialed atomic.Int64
	// last is the last request.
	last atomic.Pointer[http.Request]
	// Requests wait until answer is closed, if it is not nil.
	answer atomic.Pointer[chan struct{}]
	// mute disables bookmarks.
	mute atomic.Bool
}

const host = "cluster.example"

// newCluster starts a cluster with the given protocols; HTTP/2 if there are none.
func newCluster(t *testing.T, protocols ...string) *cluster {
	t.Helper()
	c := &cluster{authority: newAuthority(t, "authority"), accepted: make(chan net.Conn), closed: make(chan struct{})}
	c.useCertificateOf(t, c.authority)
	c.server = &http.Server{
		Handler: http.HandlerFunc(c.serve), ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			ClientAuth: tls.RequestClientCert, NextProtos: protocols,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.serving.Load(), nil },
		},
	}
	if len(protocols) > 0 {
		c.server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = c.server.ServeTLS(c, "", "") })
	t.Cleanup(func() {
		c.server.Close()
		serving.Wait()
	})
	return c
}

func (c *cluster) useCertificateOf(t *testing.T, a *authority) {
	t.Helper()
	certificate, key := a.leaf(t, host)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	c.serving.Store(&pair)
}

// serve answers as an API server does. Watches stay open, with a bookmark each
// minute.
func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.last.Store(r)
	if answer := c.answer.Load(); answer != nil {
		select {
		case <-*answer:
		case <-r.Context().Done():
			return
		}
	}
	_, _ = fmt.Fprintln(w, "{}")
	for r.URL.Query().Get("watch") != "" {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(time.Minute):
			if !c.mute.Load() {
				_, _ = fmt.Fprintln(w, "{}")
			}
		case <-r.Context().Done():
			return
		}
	}
}

// Accept, Close and Addr implement net.Listener.
func (c *cluster) Accept() (net.Conn, error) {
	select {
	case conn := <-c.accepted:
		return conn, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}
func (c *cluster) Close() error   { close(c.closed); return nil }
func (c *cluster) Addr() net.Addr { return &net.TCPAddr{} }

// dial opens a connection, also while the network is silent, as one through a
// proxy does.
func (c *cluster) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c.dialed.Add(1)
	here, there := net.Pipe()
	if !c.silent.Load() {
		select {
		case c.accepted <- there:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &silentConn{Conn: here, cluster: c, ended: make(chan struct{})}, nil
}

// silentConn drops all data while the network is silent.
type silentConn struct {
	net.Conn
	cluster *cluster
	once    sync.Once
	ended   chan struct{}
}

func (w *silentConn) Read(into []byte) (int, error) {
	if !w.cluster.silent.Load() {
		n, err := w.Conn.Read(into)
		if !w.cluster.silent.Load() {
			return n, err
		}
	}
	<-w.ended
	return 0, net.ErrClosed
}

func (w *silentConn) Write(from []byte) (int, error) {
	if w.cluster.silent.Load() {
		return len(from), nil
	}
	return w.Conn.Write(from)
}

func (w *silentConn) Close() error {
	w.once.Do(func() { close(w.ended) })
	return w.Conn.Close()
}

// files are the files of one client: its certificate, key, authority and token.
type files struct{ dir string }

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

func (f files) write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(f.path(name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// newFiles writes a kubeconfig that names a file for each field that can be one.
func newFiles(t *testing.T, c *cluster) files {
	t.Helper()
	f := files{t.TempDir()}
	certificate, key := c.authority.leaf(t, "first")
	f.write(t, "ca.crt", c.authority.pem)
	f.write(t, "client.crt", certificate)
	f.write(t, "client.key", key)
	f.write(t, "token", []byte("token-1\n"))
	f.write(t, "kubeconfig", []byte(`apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "https://`+host+`", certificate-authority: ca.crt}}]
users: [{name: it, user: {client-certificate: client.crt, client-key: client.key, tokenFile: token}}]
`))
	return f
}
