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

// Options are options for [Open].
type Options struct {
	// Kubeconfig is the path of a kubeconfig; empty for the service account of the
	// pod.
	Kubeconfig string
	// Field is the field of the configuration that has the path, for errors.
	Field     string
	UserAgent string
	// Observer may be nil.
	Observer Observer
	// Interval is how often the files are checked for changes; 0 means two seconds.
	Interval time.Duration

	// For tests: the network, and the service account.
	dial dialFunc
	pod  func() (*rest.Config, error)
}

// Observer is notified when credentials change, one call at a time. Errors name files
// and never contain their content.
type Observer interface {
	// CredentialsRead is called when changed files are in use.
	CredentialsRead()
	// CredentialsRejected is called when changed files cannot be used: the previous
	// credentials stay in use.
	CredentialsRejected(err error)
}

const defaultInterval = 2 * time.Second

// Connection is a connection to the API server. It is safe for concurrent use.
type Connection struct {
	opts   Options
	limits limits
	config *rest.Config

	// current is the transport of the next request. It is never nil.
	current atomic.Pointer[link]
	// users are the names of the user with the current credentials; see Users.
	users atomic.Pointer[[]string]
	// reloading is held while the files are read.
	reloading     sync.Mutex
	seen, applied contents
}

// Open reads the files. It sends no request.
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
		return nil, c.placed(err)
	}
	c.seen, c.applied = found, found
	c.use(first, found.config)
	c.config = &rest.Config{
		Host: first.base.String(), UserAgent: opts.UserAgent, WarningHandler: rest.NoWarnings{}, Transport: c,
	}
	return c, nil
}

// Config returns the config of clients of the API server. It holds no credentials:
// they are added to each request.
func (c *Connection) Config() *rest.Config { return rest.CopyConfig(c.config) }

// RoundTrip implements http.RoundTripper with the current credentials.
func (c *Connection) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.current.Load().RoundTrip(request)
}

// Run checks the files for changes until the context ends.
func (c *Connection) Run(ctx context.Context) {
	ticker := time.NewTicker(c.opts.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.reload()
		case <-ctx.Done():
			return
		}
	}
}

// reload applies files that have changed and were the same in two checks in a row, so
// that a certificate and its key are not read while they are being replaced.
func (c *Connection) reload() {
	c.reloading.Lock()
	defer c.reloading.Unlock()
	found := c.read()
	settled := found.equal(&c.seen)
	c.seen = found
	if !settled || found.equal(&c.applied) {
		return
	}
	was := c.applied
	c.applied = found
	if err := c.apply(&found, &was); err != nil {
		c.opts.Observer.CredentialsRejected(err)
		return
	}
	c.opts.Observer.CredentialsRead()
}

// apply makes the next requests use other credentials.
func (c *Connection) apply(found, was *contents) error {
	if found.err != nil {
		return found.err
	}
	old := c.current.Load()
	keep := old
	if found.tls != was.tls {
		keep = nil
	}
	next, err := newLink(found.config, keep, c.opts.dial, c.limits)
	if err != nil {
		return c.placed(err)
	}
	if next.base.Path != old.base.Path {
		return fmt.Errorf("the API server's address changed from %s to %s: start the server again to use another path", old.base, next.base)
	}
	c.use(next, found.config)
	if keep == nil {
		old.retire()
	}
	return nil
}

// placed adds the field with the kubeconfig to an error.
func (c *Connection) placed(err error) error {
	return fmt.Errorf("read %s: %w", c.opts.Field, err)
}

// use makes a link the current one.
func (c *Connection) use(l *link, config *rest.Config) {
	users := usersOf(config)
	c.users.Store(&users)
	c.current.Store(l)
}

// baseOf returns the address of the API server of a config.
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
