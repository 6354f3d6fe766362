package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

// reloadInterval is how often the files are checked. A change is applied when it is seen twice, so
// that files are not used while they are being written.
const reloadInterval = 2 * time.Second

// certificates are the certificate of an endpoint and the authorities of its callers, from the last
// valid files.
type certificates struct {
	files    certificateFiles
	logger   logr.Logger
	observer certificateObserver
	// current is nil until the files have been read for the first time.
	current atomic.Pointer[identity]
	// rejected is why the current files are not used; nil if they are.
	rejected atomic.Pointer[error]
	// refusals limits the log lines about callers whose names are not allowed.
	refusals rate.Sometimes

	// Only the goroutine that follows the files uses these: the contents at the last check,
	// and the contents that were applied or rejected.
	seen, handled contents
}

// certificateFiles are the paths in a section of the config.
type certificateFiles struct {
	section          string
	certificate, key string
	// authorities is empty when callers need no certificate.
	authorities string
	// inHandshake makes the handshake fail without a certificate of the authorities that has one of the
	// names, or anyName. Without it, callers get an HTTP answer.
	inHandshake, anyName bool
	names                []string
	// protocols are the versions of HTTP.
	protocols []string
	// wait is how long to wait for files that are missing at start.
	wait time.Duration
}

// field returns the full name of a field: "webhook.keyFile".
func (f *certificateFiles) field(name string) string { return f.section + "." + name }

// certificateObserver exports the state of certificates.
type certificateObserver interface {
	// CertificateExpires sets when the certificates in a file expire.
	CertificateExpires(file string, at time.Time)
	// CertificateReloadFailed counts changed files that cannot be used.
	CertificateReloadFailed()
}

// identity is the TLS configuration and the authorities of callers.
type identity struct {
	tls *tls.Config
	// expires is when the server's certificate does.
	expires time.Time
	// callers is nil when callers need no certificate.
	callers *x509.CertPool
}

// contents are the contents of the files, or why they cannot be read.
type contents struct {
	certificate, key, callers []byte
	err                       error
}

func (c contents) equal(d contents) bool {
	return bytes.Equal(c.certificate, d.certificate) && bytes.Equal(c.key, d.key) && bytes.Equal(c.callers, d.callers) &&
		(c.err == nil) == (d.err == nil)
}

// loadCertificates reads the files for the first time. Missing files are an error, unless there is a
// time to wait for them.
func loadCertificates(files certificateFiles, logger logr.Logger, observer certificateObserver) (*certificates, error) {
	c := &certificates{files: files, logger: logger, observer: observer, refusals: rate.Sometimes{Interval: time.Minute}}
	found := c.read()
	if files.wait > 0 && errors.Is(found.err, fs.ErrNotExist) {
		logger.Info("waiting for certificate files", "cause", found.err.Error(), "atMost", files.wait.String())
		c.rejected.Store(&found.err)
		return c, nil
	}
	if err := c.use(found); err != nil {
		return nil, err
	}
	c.seen, c.handled = found, found
	return c, nil
}

var errNoCertificateYet = errors.New("the certificate files do not exist yet")

// tlsConfig returns a configuration that uses the current files in each handshake.
func (c *certificates) tlsConfig() *tls.Config {
	current := func(*tls.ClientHelloInfo) (*tls.Config, error) {
		identity := c.current.Load()
		if identity == nil {
			return nil, errNoCertificateYet
		}
		return identity.tls, nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: c.files.protocols, GetConfigForClient: current}
}

// follow checks the files until the context ends. It returns an error if files are still missing
// after the time to wait.
func (c *certificates) follow(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	limit := time.NewTimer(c.files.wait)
	defer limit.Stop()
	for {
		select {
		case <-ticker.C:
			c.look()
		case <-limit.C:
			if c.current.Load() == nil {
				return fmt.Errorf("waited %v for certificate files: %w; put them there, or give them more time with %s",
					c.files.wait, *c.rejected.Load(), c.files.field("certificateWait"))
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// look applies files that have changed and then stayed the same.
func (c *certificates) look() {
	files := c.read()
	settled := files.equal(c.seen)
	c.seen = files
	waiting := c.current.Load() == nil
	if !settled || files.equal(c.handled) || waiting && files.err != nil {
		return
	}
	c.handled = files
	if err := c.use(files); err != nil {
		c.rejected.Store(&err)
		c.observer.CertificateReloadFailed()
		c.logger.Error(err, "changed certificate files cannot be used; the previous ones stay in use")
		return
	}
	c.rejected.Store(nil)
	message := "certificates read again"
	if waiting {
		message = "certificates read"
	}
	c.logger.Info(message, "expires", c.current.Load().expires)
}

func (c *certificates) read() contents {
	var files contents
	for _, f := range []struct {
		field, path string
		into        *[]byte
	}{
		{"certificateFile", c.files.certificate, &files.certificate},
		{"keyFile", c.files.key, &files.key},
		{"clientCAFile", c.files.authorities, &files.callers},
	} {
		if f.path == "" {
			continue
		}
		text, err := os.ReadFile(f.path)
		if err != nil {
			return contents{err: fmt.Errorf("read %s: %w", c.files.field(f.field), err)}
		}
		*f.into = text
	}
	return files
}

// use applies the files. It applies both the certificate and the authorities, or neither.
func (c *certificates) use(files contents) error {
	if files.err != nil {
		return files.err
	}
	pair, err := parsePair(files.certificate, files.key)
	if err != nil {
		return fmt.Errorf("use %s %s with %s %s: %w",
			c.files.field("certificateFile"), c.files.certificate, c.files.field("keyFile"), c.files.key, err)
	}
	next := &identity{expires: pair.Leaf.NotAfter, tls: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   c.files.protocols,
		Certificates: []tls.Certificate{pair},
		// A resumed session would outlive a change of the authorities.
		SessionTicketsDisabled: true,
	}}
	var authorities []*x509.Certificate
	if c.files.authorities != "" {
		if authorities, err = parseAuthorities(files.callers); err != nil {
			return fmt.Errorf("use %s %s: %w", c.files.field("clientCAFile"), c.files.authorities, err)
		}
		next.callers = x509.NewCertPool()
		for _, a := range authorities {
			next.callers.AddCert(a)
		}
		next.tls.ClientAuth = tls.RequestClientCert
		if c.files.inHandshake {
			next.tls.ClientAuth = tls.RequireAnyClientCert // which VerifyConnection verifies
			next.tls.ClientCAs = next.callers              // callers see which authorities are accepted
			next.tls.VerifyConnection = func(state tls.ConnectionState) error {
				return c.admit(state.PeerCertificates, next.callers)
			}
		}
	}
	c.current.Store(next)
	c.observer.CertificateExpires(c.files.certificate, next.expires)
	if len(authorities) > 0 {
		first := slices.MinFunc(authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		c.observer.CertificateExpires(c.files.authorities, first.NotAfter)
	}
	return nil
}

// parsePair returns a certificate with its key. Errors contain nothing of the key.
func parsePair(certificate, key []byte) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return pair, fmt.Errorf("%w; give a certificate and its key in PEM form", err)
	}
	return pair, nil
}

// state is a readiness check: handshakes can work. Its note says what is wrong with changed files.
func (c *certificates) state() (note string, err error) {
	if c.current.Load() == nil {
		return "", fmt.Errorf("waiting for certificate files: %w", *c.rejected.Load())
	}
	if rejected := c.rejected.Load(); rejected != nil {
		note = "changed files are not used: " + (*rejected).Error()
	}
	if expires := c.current.Load().expires; time.Now().After(expires) {
		return note, fmt.Errorf("the certificate in %s expired at %s: renew it",
			c.files.certificate, expires.UTC().Format(time.RFC3339))
	}
	return note, nil
}

var errNoAuthorities = errors.New("it holds no certificate in PEM form")

// parseAuthorities parses PEM certificates. It skips other blocks; a certificate that cannot be
// parsed is an error.
func parseAuthorities(text []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(found)+1, err)
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return nil, errNoAuthorities
	}
	return found, nil
}
