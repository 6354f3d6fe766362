// Package gate is an HTTPS proxy between one client and kube-apiserver. It records each
// request, and can hold a request before it is forwarded, or the answer before it is
// returned. So a test can kill a client between any two of its requests.
package gate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"sync"
)

// Request is a request that was forwarded.
type Request struct {
	Method, Path string
	// Query is the query, without the question mark.
	Query string
}

// Gate is the proxy. It forwards requests with their credentials.
type Gate struct {
	server   *http.Server
	listener net.Listener

	mu     sync.Mutex
	passed []Request
	holds  []*Hold
}

// Hold is one request that is held.
type Hold struct {
	// Held is closed when the request has arrived.
	Held <-chan struct{}

	held, released chan struct{}
	once           sync.Once
	match          func(*http.Request) bool
	answered       bool
}

// Options of a gate.
type Options struct {
	// Server is the address of kube-apiserver, and CAFile its authority.
	Server, CAFile string
	// CertFile and KeyFile are the certificate of the gate, for 127.0.0.1.
	CertFile, KeyFile string
}

// Listen starts a gate on a port of 127.0.0.1.
func Listen(options Options) (*Gate, error) {
	target, err := url.Parse(options.Server)
	if err != nil {
		return nil, fmt.Errorf("read the address of kube-apiserver: %w", err)
	}
	authority, err := os.ReadFile(options.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority of kube-apiserver: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", options.CAFile)
	}
	g := &Gate{}
	if g.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen on a port of 127.0.0.1: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		FlushInterval: -1,
		// Broken connections are expected.
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: func(response *http.Response) error { return g.wait(response.Request, true) },
		// If kube-apiserver is down, the connection breaks, and no answer is invented.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.server = &http.Server{ErrorLog: proxy.ErrorLog, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.note(r)
		if err := g.wait(r, false); err != nil {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() {
		if err := g.server.ServeTLS(g.listener, options.CertFile, options.KeyFile); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return g, nil
}

// Address is the URL of the gate.
func (g *Gate) Address() string { return "https://" + g.listener.Addr().String() }

// Close ends the gate and all its connections.
func (g *Gate) Close() error {
	g.mu.Lock()
	holds := g.holds
	g.mu.Unlock()
	for _, hold := range holds {
		hold.Release()
	}
	return g.server.Close()
}

// Passed returns every request that came, in order.
func (g *Gate) Passed() []Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.passed)
}

// HoldRequest holds the next request that matches, before kube-apiserver gets
// it.
func (g *Gate) HoldRequest(match func(*http.Request) bool) *Hold { return g.hold(match, false) }

// HoldAnswer holds the answer to the next request that matches: kube-apiserver has
// carried it out, and the client does not know.
func (g *Gate) HoldAnswer(match func(*http.Request) bool) *Hold { return g.hold(match, true) }

func (g *Gate) hold(match func(*http.Request) bool, answered bool) *Hold {
	held := make(chan struct{})
	hold := &Hold{Held: held, held: held, released: make(chan struct{}), match: match, answered: answered}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = append(g.holds, hold)
	return hold
}

// Release forwards what is held, if the client is still connected. It may be called
// more than once.
func (h *Hold) Release() { h.once.Do(func() { close(h.released) }) }

// wait holds the request if a hold matches. It fails when the client disconnects.
func (g *Gate) wait(r *http.Request, answered bool) error {
	hold := g.take(r, answered)
	if hold == nil {
		return nil
	}
	close(hold.held)
	select {
	case <-hold.released:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// take removes and returns the hold that matches the request.
func (g *Gate) take(r *http.Request, answered bool) *Hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, hold := range g.holds {
		if hold.answered == answered && hold.match(r) {
			g.holds = slices.Delete(g.holds, i, i+1)
			return hold
		}
	}
	return nil
}

func (g *Gate) note(r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed = append(g.passed, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery})
}
