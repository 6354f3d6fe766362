package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// reloadInterval is how often the files are looked at. A change is taken when
// it is seen twice, so that files are not read while they are being written.
const reloadInterval = 2 * time.Second

// certificates are the server's certificate and the authorities of its callers,
// as the files last were when they could be used.
type certificates struct {
	webhook  *v1alpha1.Webhook
	logger   logr.Logger
	observer certificateObserver
	current  atomic.Pointer[identity]
	// rejected is why the files are not what is used; nil if they are.
	rejected atomic.Pointer[error]

	// Of the one goroutine that follows the files: what was seen at the last
	// look, and what was dealt with.
	seen, taken contents
}

// certificateObserver counts what happens to certificates.
type certificateObserver interface {
	// CertificateExpires tells when what is in a file expires.
	CertificateExpires(file string, at time.Time)
	// CertificateReloadFailed tells that changed files cannot be used.
	CertificateReloadFailed()
}

// identity is what handshakes and callers are checked with.
type identity struct {
	tls *tls.Config
	// expires is when the server's certificate does.
	expires time.Time
	// callers is nil when callers need no certificate.
	callers *x509.CertPool
}

// contents of the files, or why they cannot be read.
type contents struct {
	certificate, key, callers []byte
	err                       error
}

func (c contents) equal(d contents) bool {
	return bytes.Equal(c.certificate, d.certificate) && bytes.Equal(c.key, d.key) && bytes.Equal(c.callers, d.callers) &&
		(c.err == nil) == (d.err == nil)
}

// loadCertificates reads the files for the first time.
func loadCertificates(webhook *v1alpha1.Webhook, logger logr.Logger, observer certificateObserver) (*certificates, error) {
	c := &certificates{webhook: webhook, logger: logger, observer: observer}
	files := c.read()
	if err := c.use(files); err != nil {
		return nil, err
	}
	c.seen, c.taken = files, files
	return c, nil
}

// tlsConfig asks for what is current in each handshake.
func (c *certificates) tlsConfig() *tls.Config {
	config := c.current.Load().tls.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load().tls, nil }
	return config
}

// follow looks at the files until the context ends.
func (c *certificates) follow(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
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

// look takes files that have changed and then stayed as they are.
func (c *certificates) look() {
	files := c.read()
	settled := files.equal(c.seen)
	c.seen = files
	if !settled || files.equal(c.taken) {
		return
	}
	c.taken = files
	if err := c.use(files); err != nil {
		c.rejected.Store(&err)
		c.observer.CertificateReloadFailed()
		c.logger.Error(err, "changed certificate files cannot be used; what was read before stays in use")
		return
	}
	c.rejected.Store(nil)
	c.logger.Info("certificates read again", "expires", c.current.Load().expires)
}

func (c *certificates) read() contents {
	var files contents
	for _, f := range []struct {
		field, path string
		into        *[]byte
	}{
		{"webhook.certificateFile", c.webhook.CertificateFile, &files.certificate},
		{"webhook.keyFile", c.webhook.KeyFile, &files.key},
		{"webhook.clientCAFile", c.webhook.ClientCAFile, &files.callers},
	} {
		if f.path == "" {
			continue
		}
		text, err := os.ReadFile(f.path)
		if err != nil {
			return contents{err: fmt.Errorf("read %s: %w", f.field, err)}
		}
		*f.into = text
	}
	return files
}

// use makes an identity of the files. The certificate and the authorities are
// both good, or neither is used.
func (c *certificates) use(files contents) error {
	if files.err != nil {
		return files.err
	}
	pair, err := tls.X509KeyPair(files.certificate, files.key)
	if err != nil {
		return fmt.Errorf("use webhook.certificateFile %s with webhook.keyFile %s: %w; give a certificate and its key in PEM form",
			c.webhook.CertificateFile, c.webhook.KeyFile, err)
	}
	next := &identity{expires: pair.Leaf.NotAfter, tls: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
		// A resumed session would outlive a change of the authorities.
		SessionTicketsDisabled: true,
	}}
	var authorities []*x509.Certificate
	if c.webhook.ClientCAFile != "" {
		if authorities, err = parseAuthorities(files.callers); err != nil {
			return fmt.Errorf("use webhook.clientCAFile %s: %w", c.webhook.ClientCAFile, err)
		}
		next.callers = x509.NewCertPool()
		for _, a := range authorities {
			next.callers.AddCert(a)
		}
		next.tls.ClientAuth, next.tls.ClientCAs = tls.VerifyClientCertIfGiven, next.callers
	}
	c.current.Store(next)
	c.observer.CertificateExpires(c.webhook.CertificateFile, next.expires)
	if len(authorities) > 0 {
		first := slices.MinFunc(authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		c.observer.CertificateExpires(c.webhook.ClientCAFile, first.NotAfter)
	}
	return nil
}

// state says whether handshakes can work, and what is wrong with the files.
func (c *certificates) state() (note string, err error) {
	if rejected := c.rejected.Load(); rejected != nil {
		note = "changed files are not used: " + (*rejected).Error()
	}
	if expires := c.current.Load().expires; time.Now().After(expires) {
		return note, fmt.Errorf("the certificate in %s expired at %s: renew it", c.webhook.CertificateFile, expires.UTC().Format(time.RFC3339))
	}
	return note, nil
}

var errNoAuthorities = errors.New("it holds no certificate in PEM form")
