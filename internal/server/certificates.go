package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// reloadInterval is how often the files are looked at. A change is taken when
// it is seen twice, so that files are not read while they are being written.
const reloadInterval = 2 * time.Second

// certificates are the certificate of an endpoint and the authorities of its
// callers, as the files last were when they could be used.
type certificates struct {
	files    certificateFiles
	logger   logr.Logger
	observer certificateObserver
	// current is nil while the files are waited for for the first time.
	current atomic.Pointer[identity]
	// rejected is why the files are not what is used; nil if they are.
	rejected atomic.Pointer[error]

	// Of the one goroutine that follows the files: what was seen at the last
	// look, and what was dealt with.
	seen, taken contents
}

// certificateFiles are the paths that a section of the config names.
type certificateFiles struct {
	section          string
	certificate, key string
	// authorities is empty when callers need no certificate.
	authorities string
	// inHandshake ends connections on which a certificate is shown that the
	// authorities did not sign. Without it, callers are told over HTTP.
	inHandshake bool
	// names are the common names that callers may have; with none, any.
	names []string
	// wait is how long files are waited for that are not there at start.
	wait time.Duration
}

// field is the full name of a field: "webhook.keyFile".
func (f *certificateFiles) field(name string) string { return f.section + "." + name }

// mayCall reports whether the name in a certificate is one that may call.
func (f *certificateFiles) mayCall(shown *x509.Certificate) bool {
	return len(f.names) == 0 || slices.Contains(f.names, shown.Subject.CommonName)
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

// loadCertificates reads the files for the first time. Files that are not there
// are an error, unless they may be waited for.
func loadCertificates(files certificateFiles, logger logr.Logger, observer certificateObserver) (*certificates, error) {
	c := &certificates{files: files, logger: logger, observer: observer}
	found := c.read()
	if files.wait > 0 && errors.Is(found.err, fs.ErrNotExist) {
		logger.Info("waiting for certificate files", "cause", found.err.Error(), "atMost", files.wait.String())
		c.rejected.Store(&found.err)
		return c, nil
	}
	if err := c.use(found); err != nil {
		return nil, err
	}
	c.seen, c.taken = found, found
	return c, nil
}

var errNoCertificateYet = errors.New("the files of the certificate are not there yet")

// tlsConfig asks for what is current in each handshake.
func (c *certificates) tlsConfig() *tls.Config {
	current := func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		identity := c.current.Load()
		if identity == nil {
			return nil, errNoCertificateYet
		}
		conn, guarded := hello.Conn.(*guardedConn)
		if !guarded {
			return identity.tls, nil
		}
		config := identity.tls.Clone()
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if c.files.inHandshake && identity.callers != nil && len(state.PeerCertificates) > 0 {
				if _, err := verifyShown(state.PeerCertificates, identity.callers, time.Now()); err != nil {
					return err
				}
			}
			conn.identified(c.files.inHandshake && (identity.callers == nil || len(state.PeerCertificates) > 0 && c.files.mayCall(state.PeerCertificates[0])))
			return nil
		}
		return config, nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols(), GetConfigForClient: current}
}

// protocols are those of HTTP that are spoken over TLS.
func protocols() []string { return []string{"h2", "http/1.1"} }

// follow looks at the files until the context ends. An error means that files
// that were waited for have not come.
func (c *certificates) follow(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	patience := time.NewTimer(c.files.wait)
	defer patience.Stop()
	for {
		select {
		case <-ticker.C:
			c.look()
		case <-patience.C:
			if c.current.Load() == nil {
				return fmt.Errorf("waited %v for certificate files: %w; put them there, or give them more time with %s",
					c.files.wait, *c.rejected.Load(), c.files.field("certificateWait"))
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// look takes files that have changed and then stayed as they are.
func (c *certificates) look() {
	files := c.read()
	settled := files.equal(c.seen)
	c.seen = files
	waiting := c.current.Load() == nil
	if !settled || files.equal(c.taken) || waiting && files.err != nil {
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

// use makes an identity of the files. The certificate and the authorities are
// both good, or neither is used.
func (c *certificates) use(files contents) error {
	if files.err != nil {
		return files.err
	}
	pair, err := tls.X509KeyPair(files.certificate, files.key)
	if err != nil {
		return fmt.Errorf("use %s %s with %s %s: %w; give a certificate and its key in PEM form",
			c.files.field("certificateFile"), c.files.certificate, c.files.field("keyFile"), c.files.key, err)
	}
	next := &identity{expires: pair.Leaf.NotAfter, tls: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   protocols(),
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
		if next.tls.ClientAuth = tls.RequestClientCert; c.files.inHandshake {
			next.tls.ClientCAs = next.callers // callers are told whose certificates are good
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

// state says whether handshakes can work, and what is wrong with the files.
func (c *certificates) state() (note string, err error) {
	if c.current.Load() == nil {
		return "", fmt.Errorf("waiting for certificate files: %w", *c.rejected.Load())
	}
	if rejected := c.rejected.Load(); rejected != nil {
		note = "changed files are not used: " + (*rejected).Error()
	}
	if expires := c.current.Load().expires; time.Now().After(expires) {
		return note, fmt.Errorf("the certificate in %s expired at %s: renew it", c.files.certificate, expires.UTC().Format(time.RFC3339))
	}
	return note, nil
}

var errNoAuthorities = errors.New("it holds no certificate in PEM form")
