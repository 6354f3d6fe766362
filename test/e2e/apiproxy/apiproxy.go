// Package apiproxy is an HTTPS proxy between one client and kube-apiserver. It records each
// request, and can hold a request before it is forwarded, or the answer before it is
// returned. So a test can kill a client between any two of its requests.
package apiproxy

import (
	"context"
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

// Request is a request that was received.
type Request struct {
	Method, Path string
	// Query is the query, without the question mark.
	Query string
	// Status is the answer of kube-apiserver; 0 while there is none.
	Status int
}

// Proxy is the proxy. It forwards requests with their credentials.
type Proxy struct {
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

// Options of a proxy.
type Options struct {
	// Server is the address of kube-apiserver, and CAFile its authority.
	Server, CAFile string
	// CertFile and KeyFile are the certificate of the proxy, for 127.0.0.1.
	CertFile, KeyFile string
}

// Listen starts a proxy on a port of 127.0.0.1.
func Listen(options Options) (*Proxy, error) {
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
	p := &Proxy{}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen on a port of 127.0.0.1: %w", err)
	}
	reverse := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		FlushInterval: -1,
		// Broken connections are expected.
		ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: func(response *http.Response) error {
			p.note(response)
			return p.wait(response.Request, true)
		},
		// If kube-apiserver is down, the connection breaks, and no answer is invented.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{ErrorLog: reverse.ErrorLog, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = p.record(r)
		if err := p.wait(r, false); err != nil {
			panic(http.ErrAbortHandler)
		}
		reverse.ServeHTTP(w, r)
	})}
	go func() {
		if err := p.server.ServeTLS(p.listener, options.CertFile, options.KeyFile); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return p, nil
}

// Address is the URL of the proxy.
func (p *Proxy) Address() string { return "https://" + p.listener.Addr().String() }

// Close ends the proxy and all its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	holds := p.holds
	p.mu.Unlock()
	for _, hold := range holds {
		hold.Release()
	}
	return p.server.Close()
}

// Passed returns every received request, in order.
func (p *Proxy) Passed() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.passed)
}

// HoldRequest holds the next request that matches, before kube-apiserver gets
// it.
func (p *Proxy) HoldRequest(match func(*http.Request) bool) *Hold { return p.hold(match, false) }

// HoldAnswer holds the answer to the next request that matches: kube-apiserver has
// carried it out, and the client does not know.
func (p *Proxy) HoldAnswer(match func(*http.Request) bool) *Hold { return p.hold(match, true) }

func (p *Proxy) hold(match func(*http.Request) bool, answered bool) *Hold {
	held := make(chan struct{})
	hold := &Hold{Held: held, held: held, released: make(chan struct{}), match: match, answered: answered}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, hold)
	return hold
}

// Release forwards what is held, if the client is still connected. It may be called
// more than once.
func (h *Hold) Release() { h.once.Do(func() { close(h.released) }) }

// wait holds the request if a hold matches. It fails when the client disconnects.
func (p *Proxy) wait(r *http.Request, answered bool) error {
	hold := p.matchingHold(r, answered)
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

// matchingHold removes and returns the hold that matches the request.
func (p *Proxy) matchingHold(r *http.Request, answered bool) *Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, hold := range p.holds {
		if hold.answered == answered && hold.match(r) {
			p.holds = slices.Delete(p.holds, i, i+1)
			return hold
		}
	}
	return nil
}

// place is the key of a request's place in Proxy.passed.
type place struct{}

func (p *Proxy) record(r *http.Request) *http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = append(p.passed, Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery})
	return r.WithContext(context.WithValue(r.Context(), place{}, len(p.passed)-1))
}

// note records the answer to a request.
func (p *Proxy) note(response *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed[response.Request.Context().Value(place{}).(int)].Status = response.StatusCode
}
