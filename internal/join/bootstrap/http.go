package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ClientCertificate decides which client certificates are accepted.
type ClientCertificate interface {
	// Check checks the certificate of a request's connection. The error is an
	// [*attest.Refusal] if the certificate is not accepted.
	Check(r *http.Request) error
}

// Challenger creates challenges that the evidence of a machine must contain.
type Challenger interface {
	Challenge() string
}

// DefaultMaxBodyBytes is the default maximum size of a request. Evidence has a few
// kilobytes.
const DefaultMaxBodyBytes = 64 << 10

// HTTPOptions configure the handler.
type HTTPOptions struct {
	// Certificates checks client certificates; nil: none is required.
	Certificates ClientCertificate
	// Challenger answers GET /challenge; nil: the path does not exist.
	Challenger Challenger
	// Version is returned by /health.
	Version string
	// MaxBodyBytes is the maximum size of a request; 0: DefaultMaxBodyBytes.
	MaxBodyBytes int64
}

// VersionHeader is the header in which /health returns the version.
const VersionHeader = "Node-Authorizer-Version"

// handler implements the wire protocol.
type handler struct {
	*Service
	opts HTTPOptions
}

// Handler returns the HTTP handler for machines. It trusts no proxy: a machine has the address
// of its connection.
func (s *Service) Handler(opts HTTPOptions) http.Handler {
	if opts.MaxBodyBytes == 0 {
		opts.MaxBodyBytes = DefaultMaxBodyBytes
	}
	h := &handler{s, opts}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /authorize/{nodeName}", h.authorize)
	mux.HandleFunc("GET /health", h.health)
	if opts.Challenger != nil {
		mux.HandleFunc("GET /challenge", h.sendChallenge)
	}
	return mux
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(VersionHeader, h.opts.Version)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("OK\n"))
}

// registration is the document of the protocol, with its spelling of names.
type registration struct {
	Spec struct {
		NodeName   string
		RemoteAddr string
		Request    []byte
	}
	Status struct {
		Allowed bool
		Token   string
		Reason  string
	}
}

// exchange is one request for a token, with its answer.
type exchange struct {
	*handler
	w      http.ResponseWriter
	r      *http.Request
	began  time.Time
	event  Event
	answer registration
}

func (h *handler) authorize(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, w: w, r: r, began: h.options.Clock()}
	x.event.Attestor = h.options.Attestor.Name()
	x.event.Asked = clip(r.PathValue("nodeName"), maxAsked)
	x.event.RemoteAddr = remote(r)
	x.answer.Spec.NodeName, x.answer.Spec.RemoteAddr = x.event.Asked, x.event.RemoteAddr.String()
	defer x.finish()
	x.err(x.serve())
}

// serve runs the checks of a request until one fails.
func (x *exchange) serve() error {
	if err := x.admitted(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), x.options.Timeout)
	defer cancel()
	body, err := x.read()
	if err != nil {
		return err
	}
	req := &attest.Request{NodeName: x.r.PathValue("nodeName"), RemoteAddr: x.event.RemoteAddr, Body: body}
	grant, id, err := x.Join(ctx, req)
	var next *attest.Continue
	if errors.As(err, &next) {
		x.challenge(next)
		return nil
	}
	if id != nil {
		x.event.Node, x.event.Provider, x.event.InstanceID = id.NodeName, id.Provider, id.InstanceID
	}
	if err != nil {
		return err
	}
	x.event.Outcome, x.event.Code, x.event.TokenID = Issued, TokenIssued, grant.Token.ID
	if grant.Repeated {
		x.event.Outcome, x.event.Code = Repeated, TokenRepeated
	}
	x.answer.Spec.Request = body
	x.answer.Status.Allowed, x.answer.Status.Token = true, grant.Token.Value()
	x.write(http.StatusOK)
	return nil
}

// ChallengeType is the media type of the challenge of a provider.
func ChallengeType(provider string) string {
	return "application/vnd.node-authorizer." + provider + "-challenge+json"
}

// challenge answers with the challenge for the next round.
func (x *exchange) challenge(next *attest.Continue) {
	x.event.Outcome, x.event.Code, x.event.Status = Challenged, ChallengeSent, http.StatusUnauthorized
	header := x.w.Header()
	header.Set("WWW-Authenticate", "Node-Authorizer provider="+strconv.Quote(x.event.Attestor)) // RFC 9110, section 11.6.1
	header.Set("Content-Type", ChallengeType(x.event.Attestor))
	header.Set("Cache-Control", "no-store")
	x.w.WriteHeader(x.event.Status)
	_, _ = x.w.Write(next.Challenge)
}

// rejection is a refusal with a status of its own.
type rejection struct {
	status int
	code   verdict.Code
	detail string
	// wait is how long to wait before a retry; 0: no retry.
	wait time.Duration
}

func (r *rejection) Error() string { return r.detail }

// admitted checks the rate limits and the client certificate. A request without a valid
// certificate, or over the limit of its source, does not count in the limit of all sources.
func (x *exchange) admitted() error {
	if wait := x.limits.reserveSource(x.event.RemoteAddr, x.began); wait > 0 {
		return tooMany("this source", wait)
	}
	if x.opts.Certificates != nil {
		if err := x.opts.Certificates.Check(x.r); err != nil {
			return fmt.Errorf("check the client certificate: %w", err)
		}
	}
	if wait := x.limits.reserveTotal(x.began); wait > 0 {
		return tooMany("all sources together", wait)
	}
	return nil
}

func tooMany(of string, wait time.Duration) *rejection {
	return &rejection{http.StatusTooManyRequests, TooManyRequests, "the rate limit of " + of + " is exceeded", wait}
}

// retryUndecided is how long a machine should wait after a request that could not be decided.
const retryUndecided = 2 * time.Second

// err answers a failed request.
func (x *exchange) err(err error) {
	var (
		rejected *rejection
		refused  *attest.Refusal
	)
	switch {
	case err == nil:
		return
	case errors.As(err, &rejected):
		x.event.Outcome, x.event.Detail = Refused, rejected.detail
	case errors.As(err, &refused):
		rejected = &rejection{status: http.StatusForbidden, code: refused.Code}
		if refused.Malformed {
			rejected.status = http.StatusBadRequest
		}
		x.event.Outcome, x.event.Detail = Refused, refused.Detail
	default:
		rejected = &rejection{status: http.StatusServiceUnavailable, code: BootstrapUnavailable, wait: retryUndecided}
		x.event.Outcome, x.event.Err = Failed, err
	}
	x.reject(rejected)
}

func (x *exchange) reject(rejected *rejection) {
	x.event.Code = rejected.code
	x.answer.Status.Reason = reason(rejected.code)
	if rejected.wait > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(rejected.wait.Seconds()))))
	}
	x.write(rejected.status)
}

// write sends the answer. An error means that the machine is gone; it will ask again.
func (x *exchange) write(status int) {
	x.event.Status = status
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Cache-Control", "no-store")
	x.w.WriteHeader(status)
	_ = json.NewEncoder(x.w).Encode(&x.answer)
}

// finish reports the request, even if its handler panicked.
func (x *exchange) finish() {
	if cause := recover(); cause != nil {
		if x.event.Outcome, x.event.Err = Failed, fmt.Errorf("panic: %v", cause); x.event.Status == 0 {
			x.reject(&rejection{status: http.StatusInternalServerError, code: BootstrapUnavailable})
		}
	}
	x.event.Duration = x.options.Clock().Sub(x.began)
	if x.options.Observer != nil {
		x.options.Observer.Attested(x.event)
	}
}

// sendChallenge returns a new challenge for the first round.
func (h *handler) sendChallenge(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, w: w, r: r, began: h.options.Clock(), event: Event{RemoteAddr: remote(r)}}
	if err := x.admitted(); err != nil {
		x.err(err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(struct{ Challenge string }{h.opts.Challenger.Challenge()})
}

// remote returns the source address of a request.
func remote(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}

// maxAsked is the maximum length of a node name.
const maxAsked = 253

// clip cuts a text, and makes it valid UTF-8 of at most the same length.
func clip(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "?") }
