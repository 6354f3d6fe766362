package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// limits are timeouts of requests and connections.
type limits struct {
	// dial and handshake are for a new connection.
	dial, handshake time.Duration
	// After pingAfter without a frame a ping is sent, and the connection is closed
	// pingTimeout later if nothing comes back.
	pingAfter, pingTimeout time.Duration
	// answer is for a whole request that is not a watch. The API server's own limit
	// is one minute (its flag --request-timeout).
	answer time.Duration
	// watchBegins is for the header of a watch, watchSilence for the time between two
	// of its bookmarks.
	watchBegins, watchSilence time.Duration
}

func defaultLimits() limits {
	return limits{
		dial: 5 * time.Second, handshake: 10 * time.Second,
		pingAfter: 5 * time.Second, pingTimeout: 5 * time.Second,
		answer: 65 * time.Second, watchBegins: 30 * time.Second, watchSilence: 90 * time.Second,
	}
}

// link is a transport with one version of the credentials.
type link struct {
	base *url.URL
	// connections is the HTTP transport, next adds the credentials to its requests.
	connections *http.Transport
	next        http.RoundTripper
	// retired ends when the credentials are replaced; it ends the link's watches.
	retired context.Context
	retire  context.CancelFunc
	limits  limits
}

// newLink returns the transport of a config. If keep is set, it shares that link's
// connections.
func newLink(config *rest.Config, keep *link, dial dialFunc, limits limits) (*link, error) {
	base, err := baseOf(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Dial = dial
	// This sets up credential plugins too.
	options, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("the credentials: %w", err)
	}
	l := &link{base: base, limits: limits}
	if keep != nil {
		l.connections, l.retired, l.retire = keep.connections, keep.retired, keep.retire
	} else {
		if l.connections, err = newTransport(options, limits); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		l.retired, l.retire = ctx, func() { cancel(); l.connections.CloseIdleConnections() }
	}
	if l.next, err = transport.HTTPWrappersForConfig(options, l.connections); err != nil {
		return nil, fmt.Errorf("the credentials: %w", err)
	}
	return l, nil
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

func dialer(limits limits) dialFunc {
	return (&net.Dialer{
		Timeout:         limits.dial,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: limits.pingAfter, Interval: limits.pingAfter, Count: 3},
	}).DialContext
}

// newTransport returns a transport that client-go would make from the same options, with
// pings.
func newTransport(options *transport.Config, limits limits) (*http.Transport, error) {
	secure, err := transport.TLSConfigFor(options)
	if err != nil {
		return nil, fmt.Errorf("the certificates: %w", err)
	}
	proxy := utilnet.NewProxierWithNoProxyCIDR(http.ProxyFromEnvironment)
	if options.Proxy != nil {
		proxy = options.Proxy
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(os.Getenv("DISABLE_HTTP2") == "") // like client-go
	return &http.Transport{
		Proxy: proxy, DialContext: options.DialHolder.Dial, TLSClientConfig: secure, TLSHandshakeTimeout: limits.handshake,
		DisableCompression: options.DisableCompression, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second,
		Protocols: &protocols,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: limits.pingAfter, PingTimeout: limits.pingTimeout,
			WriteByteTimeout: limits.pingAfter + limits.pingTimeout,
		},
	}, nil
}

// RoundTrip implements http.RoundTripper. It sends the request to the API server that
// the kubeconfig currently names, with time limits.
func (l *link) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != l.base.Scheme || request.URL.Host != l.base.Host {
		moved := *request.URL
		moved.Scheme, moved.Host = l.base.Scheme, l.base.Host
		request = request.Clone(request.Context())
		request.URL, request.Host = &moved, ""
	}
	if isWatch(request) {
		return l.watch(request)
	}
	return l.send(request)
}

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return request.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// silenceError is the error of a request to which the API server sent nothing for too
// long. It is a timeout for callers.
type silenceError struct {
	what  string
	limit time.Duration
}

// Error implements error.
func (e *silenceError) Error() string {
	return fmt.Sprintf("the API server is silent: %s within %s", e.what, e.limit)
}

// Timeout makes it a net.Error.
func (e *silenceError) Timeout() bool { return true }

// Temporary makes it a net.Error.
func (e *silenceError) Temporary() bool { return true }

// Unwrap makes it a context.DeadlineExceeded.
func (e *silenceError) Unwrap() error { return context.DeadlineExceeded }

// deadline ends a request when its time limit is exceeded.
type deadline struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration

	mu   sync.Mutex
	over error
}

// withDeadline returns the context of a request with a time limit.
func withDeadline(ctx context.Context, limit time.Duration, what string) (context.Context, *deadline) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &deadline{cancel: cancel, limit: limit}
	p.timer = time.AfterFunc(limit, func() { p.end(&silenceError{what, limit}) })
	return ctx, p
}

// end ends the request with err, if it has not ended yet.
func (p *deadline) end(err error) {
	p.mu.Lock()
	if p.over == nil {
		p.over = err
	}
	p.mu.Unlock()
	p.cancel(err)
}

// done releases the timer and the context.
func (p *deadline) done() {
	p.timer.Stop()
	p.cancel(context.Canceled)
}

// explain returns the error with which the request was ended, if it was, and else
// err.
func (p *deadline) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !errors.Is(err, io.EOF) && p.over != nil {
		return p.over
	}
	return err
}

// send sends a request that is not a watch, with a time limit.
func (l *link) send(request *http.Request) (*http.Response, error) {
	ctx, p := withDeadline(request.Context(), l.limits.answer, "no answer")
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		p.done()
		return nil, p.explain(err)
	}
	response.Body = &body{ReadCloser: response.Body, deadline: p}
	return response, nil
}

// watch sends a watch request. It limits the time until the watch starts, and the
// time between two reads.
func (l *link) watch(request *http.Request) (*http.Response, error) {
	ctx, p := withDeadline(request.Context(), l.limits.watchBegins, "the watch did not start")
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		p.done()
		return nil, p.explain(err)
	}
	started := p.timer.Stop()
	watching := &body{ReadCloser: response.Body, deadline: p}
	if bookmarks := request.URL.Query().Get("allowWatchBookmarks"); started && (bookmarks == "true" || bookmarks == "1") {
		limit := l.limits.watchSilence
		watching.limit = limit
		p.timer = time.AfterFunc(limit, func() { p.end(&silenceError{"the watch sent no event and no bookmark", limit}) })
	}
	// When the credentials are replaced, the watch ends like one that the server
	// ends: the client resumes it where it ended.
	watching.forget = context.AfterFunc(l.retired, func() { p.end(io.EOF) })
	response.Body = watching
	return response, nil
}

// body is the body of a response.
type body struct {
	io.ReadCloser
	deadline *deadline
	// limit is for the time between two reads; 0 for none.
	limit  time.Duration
	forget func() bool
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if n > 0 && b.limit > 0 && err == nil {
		b.deadline.timer.Reset(b.limit)
	}
	return n, b.deadline.explain(err)
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.forget != nil {
		b.forget()
	}
	b.deadline.done()
	return b.ReadCloser.Close()
}
