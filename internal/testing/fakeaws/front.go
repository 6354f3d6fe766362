package fakeaws

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Front serves the cloud under AWS's own host names: a proxy on loopback that answers,
// for every host of STS, EC2 and IAM in any region, over TLS with certificates of its own
// authority. Two environment variables make a program use it.
type Front struct {
	// URL is the URL of the proxy: "http://127.0.0.1:12345".
	URL string
	// AuthorityFile is the path of the authority's certificate, PEM.
	AuthorityFile string

	cloud     *Cloud
	authority *authority
	proxy     *http.Server
	endpoint  *http.Server // answers within the tunnels
	tunnels   *tunnels

	mu    sync.Mutex
	asked map[string]int // requests by host
}

// Front opens a front, which closes with the cloud. It writes the certificate of its
// authority to the folder.
func (c *Cloud) Front(folder string) (*Front, error) {
	authority, err := newAuthority()
	if err != nil {
		return nil, err
	}
	f := &Front{
		cloud: c, authority: authority, asked: map[string]int{},
		AuthorityFile: filepath.Join(folder, "aws-authority.pem"),
	}
	if err := os.WriteFile(f.AuthorityFile, authority.pem(), 0o600); err != nil {
		return nil, fmt.Errorf("write the certificate of the fake AWS: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen as a fake of AWS: %w", err)
	}
	f.URL = "http://" + listener.Addr().String()
	f.tunnels = &tunnels{address: listener.Addr(), opened: make(chan net.Conn), closed: make(chan struct{})}
	f.proxy = &http.Server{Handler: http.HandlerFunc(f.connect), ReadHeaderTimeout: time.Minute}
	ctx, cancel := context.WithCancel(context.Background())
	f.endpoint = &http.Server{
		Handler: http.HandlerFunc(f.answer), ReadHeaderTimeout: time.Minute,
		// Errors of clients that do not trust the authority are not logged.
		ErrorLog:    log.New(discard{}, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	for server, on := range map[*http.Server]net.Listener{f.proxy: listener, f.endpoint: f.tunnels} {
		go func() {
			if err := server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
				panic(err)
			}
		}()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, func() {
		cancel()
		_ = f.proxy.Close()
		_ = f.endpoint.Close()
	})
	return f, nil
}

// Environment returns the variables that make a Go program use the front: "NAME=VALUE"
// each. The program still connects to loopback addresses directly.
func (f *Front) Environment() []string {
	return []string{"HTTPS_PROXY=" + f.URL, "NO_PROXY=", "no_proxy=", "AWS_CA_BUNDLE=", "SSL_CERT_FILE=" + f.AuthorityFile}
}

// Transport sends the HTTPS requests of this process to the front, and others directly.
func (f *Front) Transport() *http.Transport {
	proxy, err := url.Parse(f.URL)
	if err != nil {
		panic(err)
	}
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Scheme != "https" {
				return nil, nil
			}
			return proxy, nil
		},
		MaxIdleConnsPerHost: 256,
		TLSClientConfig:     &tls.Config{RootCAs: f.authority.pool(), MinVersion: tls.VersionTLS12},
	}
}

// Requests returns the number of requests received for a host.
func (f *Front) Requests(host string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[host]
}

// connect opens a tunnel to a host of AWS. Other hosts are refused.
func (f *Front) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil || port != "443" || f.service(host) == nil {
		http.Error(w, "this fake of AWS is not for "+r.Host, http.StatusForbidden)
		return
	}
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	if _, err := conn.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		_ = conn.Close()
		return
	}
	f.tunnels.open(tls.Server(conn, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName != host {
				return nil, fmt.Errorf("the tunnel is to %s, not to %q", host, hello.ServerName)
			}
			return f.authority.certificate(host)
		},
	}))
}

func (f *Front) answer(w http.ResponseWriter, r *http.Request) {
	service := f.service(r.Host)
	if service == nil || r.TLS.ServerName != r.Host {
		http.Error(w, "misdirected request", http.StatusMisdirectedRequest)
		return
	}
	f.mu.Lock()
	f.asked[r.Host]++
	f.mu.Unlock()
	service.ServeHTTP(w, r)
}

// service returns the service of a host: the host name begins with the name of the
// service, or has it in the middle if it is a VPC endpoint
// (vpce-0a1b2c.sts.eu-west-1.vpce.amazonaws.com).
func (f *Front) service(host string) *Service {
	labels := strings.Split(host, ".")
	if len(labels) < 3 {
		return nil
	}
	if strings.HasPrefix(labels[0], "vpce-") && slices.Contains(labels, "vpce") {
		labels = labels[1:]
	}
	return f.cloud.service(strings.TrimSuffix(labels[0], "-fips"))
}

// tunnels is a listener for connections that are passed to it.
type tunnels struct {
	address net.Addr
	opened  chan net.Conn
	closed  chan struct{}
	close   sync.Once
}

func (t *tunnels) open(conn net.Conn) {
	select {
	case t.opened <- conn:
	case <-t.closed:
		_ = conn.Close()
	}
}

func (t *tunnels) Accept() (net.Conn, error) {
	select {
	case conn := <-t.opened:
		return conn, nil
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

func (t *tunnels) Close() error {
	t.close.Do(func() { close(t.closed) })
	return nil
}

func (t *tunnels) Addr() net.Addr { return t.address }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
