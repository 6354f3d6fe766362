package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// only admits callers with a certificate of a current authority. The handshake has admitted them, maybe
// before the authorities changed.
func (c *certificates) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := c.caller(r); err != nil && !errors.Is(err, errNotAuthenticated) {
			w.Header().Set("Connection", "close") // in HTTP/2, the server announces it with a frame
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit decides about the caller of a connection in the handshake.
func (c *certificates) admit(shown []*x509.Certificate, authorities *x509.CertPool) error {
	if _, err := verifyShown(shown, authorities, time.Now()); err != nil {
		return err
	}
	name := shown[0].Subject.CommonName
	if c.files.anyName || slices.Contains(c.files.names, name) {
		return nil
	}
	err := fmt.Errorf("%s may not call: add the common name to %s of the server, or call with another certificate",
		strconv.Quote(name), c.files.field("allowedClientNames"))
	c.refusals.Do(func() { c.logger.Error(err, "a caller was refused in the handshake") })
	return err
}

// Why a caller has no name.
var (
	errNotAuthenticated = errors.New("callers need no certificate")
	errNoCertificate    = errors.New("the caller sent no client certificate")
)

// invalidCertificateError says why a caller's certificate is not valid.
type invalidCertificateError struct {
	name  string
	cause error
}

func (e *invalidCertificateError) Error() string {
	return fmt.Sprintf("the client certificate of %s is not valid: %v", strconv.Quote(e.name), e.cause)
}

// caller returns the common name of a caller's valid certificate. The error is
// errNotAuthenticated, errNoCertificate or an invalidCertificateError.
func (c *certificates) caller(r *http.Request) (name string, err error) {
	identity := c.current.Load()
	if identity == nil || r.TLS == nil {
		return "", errNoCertificate
	}
	if identity.callers == nil {
		return "", errNotAuthenticated
	}
	if len(r.TLS.PeerCertificates) == 0 {
		return "", errNoCertificate
	}
	name = r.TLS.PeerCertificates[0].Subject.CommonName
	if err := connectionOf(r.Context()).check(r.TLS.PeerCertificates, identity.callers); err != nil {
		return "", &invalidCertificateError{name, err}
	}
	return name, nil
}

// verified is the result of a verification: the authorities, and when it expires.
type verified struct {
	authorities *x509.CertPool
	until       time.Time
}

// check verifies the certificate chain of a caller, once for each set of authorities.
func (c *limitedConn) check(shown []*x509.Certificate, authorities *x509.CertPool) error {
	now := time.Now()
	if good := c.good.Load(); good != nil && good.authorities == authorities && now.Before(good.until) {
		return nil
	}
	chains, err := verifyShown(shown, authorities, now)
	if err != nil {
		return err
	}
	c.good.Store(&verified{authorities, lastExpiry(chains)})
	return nil
}

// maxShown limits the number of certificates that a caller may send. The time to find a chain grows
// faster than their number, and callers need not be authenticated to make the server do it.
const maxShown = 4

var errTooManyShown = fmt.Errorf(
	"the caller sent more than %d certificates; send the certificate of the caller and its intermediates", maxShown,
)

// verifyShown returns the chains from the first certificate to the authorities.
func verifyShown(shown []*x509.Certificate, authorities *x509.CertPool, now time.Time) ([][]*x509.Certificate, error) {
	if len(shown) > maxShown {
		return nil, errTooManyShown
	}
	options := x509.VerifyOptions{
		Roots: authorities, Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, intermediate := range shown[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	return shown[0].Verify(options)
}

// lastExpiry returns when the last of the chains expires.
func lastExpiry(chains [][]*x509.Certificate) time.Time {
	var last time.Time
	for _, chain := range chains {
		first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		if first.NotAfter.After(last) {
			last = first.NotAfter
		}
	}
	return last
}
