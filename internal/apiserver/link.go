package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
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
