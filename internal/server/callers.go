package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// callers decides who may call the webhooks.
type callers struct {
	certificates *certificates
	allowed      allowedNames
}

// allowedNames are the common names that a caller's certificate may have.
type allowedNames struct {
	any   bool
	names []string
}

func allowedNamesOf(w *v1alpha1.Webhook) allowedNames {
	return allowedNames{any: w.ClientAuthentication == v1alpha1.AnyClientCertificate, names: w.AllowedClientNames}
}

func (a *allowedNames) contain(name string) bool { return a.any || slices.Contains(a.names, name) }

// only admits callers with a certificate of a current authority and an allowed name.
func (c *callers) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, message := c.check(r); status != http.StatusOK {
			if status == http.StatusUnauthorized {
				knownConnection(r.Context()).close(w)
			}
			http.Error(w, message, status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *callers) check(r *http.Request) (status int, message string) {
	name, err := c.certificates.caller(r)
	switch invalid := new(invalidCertificateError); {
	case errors.Is(err, errNotAuthenticated):
		return http.StatusOK, ""
	case errors.As(err, &invalid):
		return http.StatusUnauthorized, invalid.Error()
	case err != nil:
		return http.StatusUnauthorized, "a client certificate is required: set client-certificate and client-key in the kubeconfig " +
			"with which the API server calls this webhook"
	case !c.allowed.contain(name):
		return http.StatusForbidden, fmt.Sprintf("%s may not call this webhook: add the common name to webhook.allowedClientNames "+
			"of the server, or call it with another certificate", strconv.Quote(name))
	}
	return http.StatusOK, ""
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
	if err := knownConnection(r.Context()).check(r.TLS.PeerCertificates, identity.callers); err != nil {
		return "", &invalidCertificateError{name, err}
	}
	return name, nil
}

// connection remembers the verification of its caller's certificate.
type connection struct {
	good atomic.Pointer[verified]
	// guarded is nil in tests without a listener.
	guarded *guardedConn
}

// close closes the connection after the answer that is about to be sent. In HTTP/2, the header
// makes the server announce it with a frame.
func (c *connection) close(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	if c.guarded != nil {
		c.guarded.closeSoon()
	}
}

// verified is the result of a verification: the authorities, and when it expires.
type verified struct {
	authorities *x509.CertPool
	until       time.Time
}

type connectionKey struct{}

// rememberConnection is the ConnContext of a http.Server.
func rememberConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{guarded: guardedUnder(conn)})
}

// guardedUnder returns nil for a connection that is not guarded.
func guardedUnder(conn net.Conn) *guardedConn {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS, and a frameGate over it
		conn = over.NetConn()
	}
	guarded, _ := conn.(*guardedConn)
	return guarded
}

// watchRequests is the ConnState of a http.Server.
func watchRequests(conn net.Conn, state http.ConnState) {
	if guarded := guardedUnder(conn); guarded != nil && (state == http.StateActive || state == http.StateIdle) {
		guarded.setActive(state == http.StateActive)
	}
}

// lastRequests closes connections of unauthenticated callers after the maximum number of requests.
func lastRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := knownConnection(r.Context()).guarded; c != nil {
			if c.begin() {
				w.Header().Set("Connection", "close")
				c.closeSoon()
			}
			defer c.finish()
			if r.Body != http.NoBody && !c.known.Load() {
				r.Body = &awaitedBody{r.Body, c}
			}
		}
		next.ServeHTTP(&refusalWriter{ResponseWriter: w, request: r}, r)
	})
}

// refusalWriter closes the connection with an answer that the caller is not authenticated or not
// allowed.
type refusalWriter struct {
	http.ResponseWriter
	request *http.Request
}

// WriteHeader implements http.ResponseWriter.
func (w *refusalWriter) WriteHeader(status int) {
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	if c := knownConnection(w.request.Context()); refused && c.unauthenticated() {
		c.close(w.ResponseWriter)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (c *connection) unauthenticated() bool { return c.guarded != nil && !c.guarded.known.Load() }

// knownConnection returns the connection of a request, or a new one if there is none in the
// context.
func knownConnection(ctx context.Context) *connection {
	if known, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return known
	}
	return &connection{}
}

// check verifies the certificate chain of a caller, once for each set of authorities.
func (c *connection) check(shown []*x509.Certificate, authorities *x509.CertPool) error {
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

var errTooManyShown = fmt.Errorf("the caller sent more than %d certificates; send that of the caller and its intermediates", maxShown)

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
