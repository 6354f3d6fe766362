package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Options say where the API server is and who follows the files.
type Options struct {
	// Kubeconfig is the path of a kubeconfig; empty for the service account of the
	// pod.
	Kubeconfig string
	UserAgent  string
	// Observer may be nil.
	Observer Observer
	// Interval is how often the files are looked at; 0 for two seconds.
	Interval time.Duration

	// In tests: the network, and the service account.
	dial dialFunc
	pod  func() (*rest.Config, error)
}

// Observer is told what happens to credentials, one call at a time. Errors name
// files and never hold what is in them.
type Observer interface {
	// CredentialsRead tells that changed files are in use.
	CredentialsRead()
	// CredentialsRejected tells that changed files cannot be used: those read
	// before stay in use.
	CredentialsRejected(err error)
}

const defaultInterval = 2 * time.Second

// Connection is the way to the API server. It is safe for concurrent use.
type Connection struct {
	opts   Options
	limits limits
	config *rest.Config

	// current is what the next request uses. It is never nil.
	current atomic.Pointer[link]
	// looking is held while the files are looked at.
	looking     sync.Mutex
	seen, taken contents
}

// Open reads the files. Nothing is asked yet.
func Open(opts Options) (*Connection, error) {
	if opts.Interval == 0 {
		opts.Interval = defaultInterval
	}
	if opts.Observer == nil {
		opts.Observer = unobserved{}
	}
	if opts.pod == nil {
		opts.pod = rest.InClusterConfig
	}
	c := &Connection{opts: opts, limits: defaultLimits()}
	if opts.dial == nil {
		c.opts.dial = dialer(c.limits)
	}
	found := c.read()
	if found.err != nil {
		return nil, found.err
	}
	first, err := newLink(found.config, nil, c.opts.dial, c.limits)
	if err != nil {
		return nil, err
	}
	c.seen, c.taken = found, found
	c.current.Store(first)
	c.config = &rest.Config{
		Host: first.base.String(), UserAgent: opts.UserAgent, WarningHandler: rest.NoWarnings{}, Transport: c,
	}
	return c, nil
}

// Config is for clients of the API server. It holds no credential: they are added
// to each request on its way.
func (c *Connection) Config() *rest.Config { return rest.CopyConfig(c.config) }

// RoundTrip implements http.RoundTripper with what is current.
func (c *Connection) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.current.Load().RoundTrip(request)
}

// Run looks at the files until the context ends.
func (c *Connection) Run(ctx context.Context) {
	ticker := time.NewTicker(c.opts.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.look()
		case <-ctx.Done():
			return
		}
	}
}

// look takes files that have changed and then stayed as they are, so that a pair of
// files is not read halfway through being replaced.
func (c *Connection) look() {
	c.looking.Lock()
	defer c.looking.Unlock()
	found := c.read()
	settled := found.equal(&c.seen)
	c.seen = found
	if !settled || found.equal(&c.taken) {
		return
	}
	was := c.taken
	c.taken = found
	if err := c.use(&found, &was); err != nil {
		c.opts.Observer.CredentialsRejected(err)
		return
	}
	c.opts.Observer.CredentialsRead()
}

// use lets the next requests have other credentials.
func (c *Connection) use(found, was *contents) error {
	if found.err != nil {
		return found.err
	}
	old := c.current.Load()
	keep := old
	if found.wire != was.wire {
		keep = nil
	}
	next, err := newLink(found.config, keep, c.opts.dial, c.limits)
	if err != nil {
		return err
	}
	if next.base.Path != old.base.Path {
		return fmt.Errorf("the API server's address changed from %s to %s: start the server again to use another path", old.base, next.base)
	}
	c.current.Store(next)
	if keep == nil {
		old.retire()
	}
	return nil
}

// baseOf is where the API server of a config is.
func baseOf(config *rest.Config) (*url.URL, error) {
	secure := config.CAFile != "" || len(config.CAData) > 0 || len(config.CertData) > 0 || config.CertFile != "" || config.Insecure
	base, _, err := rest.DefaultServerURL(config.Host, "", schema.GroupVersion{}, secure)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server: %w", err)
	}
	return base, nil
}

type unobserved struct{}

func (unobserved) CredentialsRead()          {}
func (unobserved) CredentialsRejected(error) {}
