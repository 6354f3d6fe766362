package observe

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// RefusalOptions configure the log of refusals.
type RefusalOptions struct {
	// Verbosity is the level of the lines: they are written if the logger's verbosity is
	// at least this high.
	Verbosity int
	// PerSecond and Burst are the rate limit of lines. One node gets at most half of both,
	// so that it cannot keep others out of the log.
	PerSecond float64
	Burst     int
	// NotLogged, if set, is called with the number of refusals that were not logged.
	NotLogged func(n int)
}

// Refusals is the log of refusals. It is safe for concurrent use.
type Refusals struct {
	logger logr.Logger
	// always writes approvals and issued tokens, which are not limited.
	always logr.Logger
	limit  *limit
}

// NewRefusals returns a log that writes to the logger.
func NewRefusals(logger logr.Logger, opts RefusalOptions) *Refusals {
	always := logger
	logger = logger.V(opts.Verbosity)
	if opts.NotLogged == nil {
		opts.NotLogged = func(int) {}
	}
	return &Refusals{logger: logger, always: always, limit: newLimit(opts, func(n int) {
		logger.Info("refusals left out of the log", "count", n)
	})}
}

// Flush writes the number of refusals that were not logged since the last summary.
func (r *Refusals) Flush() { r.limit.flush() }

const (
	refused    = "request refused"
	notDecided = "request could not be decided"
	// notAllowed: another authorizer of the API server may still allow the request.
	notAllowed = "request not allowed"
)

// Authorize logs the refusals of an evaluator of access reviews. If the user is not a node
// and there is no opinion, this is not a refusal: other authorizers decide.
func (r *Refusals) Authorize(next decision.Authorize) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		opinion, err := next(ctx, req)
		if scope := opinion.Scope; scope != nil && !scope.Enforced && r.allowsObserved(req.User) {
			r.logObserved(accessRequest(req, new(line).add("type", typeAuthorize).identity("", req.User)), scope)
		}
		if err == nil && (opinion.Decision == verdict.Allow || opinion.Code == nodeauthz.NotANode) {
			return opinion, err
		}
		if r.logger.Enabled() && r.limit.allows(opinion.Node) {
			r.log(accessMessage(&opinion, err), accessLine(req, &opinion), err)
		}
		return opinion, err
	}
}

// Admit logs the refusals of an evaluator of admission requests.
func (r *Refusals) Admit(next decision.Admit) decision.Admit {
	return func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
		answer := next(ctx, req)
		if answer.Decision != verdict.Allow && r.logger.Enabled() && r.limit.allows(answer.Node) {
			r.log(admissionMessage(&answer), admissionLine(req, &answer), answer.Err)
		}
		return answer
	}
}

func accessMessage(opinion *decision.Opinion, err error) string {
	switch {
	case err != nil:
		return notDecided
	case opinion.Decision == verdict.Deny:
		return refused
	}
	return notAllowed
}

func admissionMessage(answer *noderestriction.Answer) string {
	if undecided(answer) {
		return notDecided
	}
	return refused
}

func (r *Refusals) log(message string, l *line, err error) {
	if err != nil {
		l.add("error", err.Error())
	}
	r.logger.Info(message, l.fields...)
}

// line holds the fields of a log line: alternating names and values.
type line struct{ fields []any }

// maxValue is the maximum length of a logged value, in bytes. Names of objects are shorter;
// values from callers may not be.
const maxValue = 512

// add adds a field, unless its value is empty.
func (l *line) add(name, value string) *line {
	if value == "" {
		return l
	}
	if len(value) > maxValue {
		value = value[:maxValue] + "…"
	}
	l.fields = append(l.fields, name, strings.ToValidUTF8(value, "\uFFFD"))
	return l
}

func (l *line) identity(node, user string) *line {
	if node != "" {
		return l.add("node", node)
	}
	return l.add("user", user)
}

func accessLine(req *access.Request, opinion *decision.Opinion) *line {
	l := accessRequest(req, new(line).add("type", typeAuthorize).identity(opinion.Node, req.User))
	reason := opinion.Reason
	if opinion.Detail != nil {
		reason = opinion.Detail()
	}
	return l.add("code", string(opinion.Code)).add("authorizer", opinion.Authorizer).add("reason", reason)
}

// accessRequest adds what is asked for.
func accessRequest(req *access.Request, l *line) *line {
	if l.add("verb", req.Verb); !req.ResourceRequest {
		return l.add("path", req.Path)
	}
	return l.add("resource", qualified(req.Group, req.Resource, req.Subresource)).
		add("namespace", req.Namespace).add("name", req.Name)
}

// admissionRequest adds the write.
func admissionRequest(req *noderestriction.Request, l *line) *line {
	return l.add("verb", strings.ToLower(string(req.Operation))).
		add("resource", qualified(req.Group, req.Resource, req.Subresource)).add("namespace", req.Namespace).add("name", req.Name)
}

func admissionLine(req *noderestriction.Request, answer *noderestriction.Answer) *line {
	return admissionRequest(req, new(line).add("type", typeAdmit).identity(answer.Node, req.User)).
		add("code", string(answer.Code)).add("rule", answer.Rule).add("reason", answer.Reason.Message)
}

// qualified renders a resource as kubectl does: "csinodes.storage.k8s.io/status".
func qualified(group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

const (
	tokenRefused    = "token refused"
	tokenNotDecided = "token could not be examined"
)

// Authenticate logs the bearer tokens that do not authenticate a user, with code and
// detail. The detail names the signer if it is known. The lines of each code, and the lines of
// errors, have the same share of the limit as one node has.
func (r *Refusals) Authenticate(next review.Authenticate) review.Authenticate {
	return func(ctx context.Context, token string) (*iam.User, error) {
		user, err := next(ctx, token)
		switch refusal, refused := errors.AsType[*iam.Refusal](err); {
		case refused:
			r.Unasked(refusal)
		case err != nil && r.logger.Enabled() && r.limit.allows(typeAuthenticate+" "+outcomeError):
			r.log(tokenNotDecided, new(line).add("type", typeAuthenticate).add("error", withoutSecrets(err.Error())), nil)
		}
		return user, err
	}
}

// Unasked logs a token review that was refused without verifying its token.
func (r *Refusals) Unasked(refusal *iam.Refusal) {
	if r.logger.Enabled() && r.limit.allows(typeAuthenticate+" "+string(refusal.Code)) {
		r.log(tokenRefused, new(line).add("type", typeAuthenticate).
			add("code", string(refusal.Code)).add("detail", withoutSecrets(refusal.Detail)), nil)
	}
}

// secrets matches the secret parts of a token, in case the error of a library quotes them.
var secrets = regexp.MustCompile(`(?i)(x-amz-(?:signature|security-token)(?:=|%3d)|k8s-aws-v1\.)[^\s&"']*`)

// withoutSecrets is the last line of defense: errors should not contain tokens at all.
func withoutSecrets(text string) string { return secrets.ReplaceAllString(text, "${1}…") }

// Attested logs a machine's request for a token. Every issued token is logged; refusals and
// errors are subject to the limit, in which an address has the same share as a node.
func (r *Refusals) Attested(event *bootstrap.Event) {
	address := event.RemoteAddr.String()
	l := new(line).add("node", event.Asked).add("instance", event.InstanceID).add("address", address).
		add("attestor", event.Attestor).add("code", string(event.Code)).add("detail", event.Detail)
	switch {
	case event.Outcome == bootstrap.Issued:
		r.always.Info("machine attested: token issued", l.fields...)
	case event.Outcome == bootstrap.Challenged: // its answer is logged
	case r.logger.Enabled() && r.limit.allows(address):
		r.log(attestationMessage(event.Outcome), l, event.Err)
	}
}

func attestationMessage(outcome bootstrap.Outcome) string {
	switch outcome {
	case bootstrap.Repeated:
		return "machine attested again: same token"
	case bootstrap.Refused:
		return "machine refused"
	}
	return "machine could not be attested"
}

// Decided logs a decision about a CertificateSigningRequest. Every approval is logged;
// denials and errors are subject to the limit.
func (r *Refusals) Decided(event *controller.Event) {
	l := new(line).add("node", event.Node).add("request", event.Request).add("kind", event.Kind.String()).
		add("code", string(event.Code)).add("reason", event.Message)
	switch {
	case event.Err != nil:
		r.logLimited("certificate request could not be decided", l, event)
	case event.Outcome == approve.Approve:
		r.always.Info("certificate request approved", l.fields...)
	case event.Outcome == approve.Deny:
		r.logLimited("certificate request denied", l, event)
	case event.Code == approve.NamesNotVouched:
		r.logLimited("certificate request left pending", l, event)
	}
}

// logLimited logs a denial or an error about a node if the limit allows it.
func (r *Refusals) logLimited(message string, l *line, event *controller.Event) {
	if r.logger.Enabled() && r.limit.allows(event.Node) {
		r.log(message, l, event.Err)
	}
}

// observed: a NodeScope in the mode Observe would refuse the request in the mode Enforce.
const observed = "request would be refused"

// WriteObserved logs a write that a NodeScope in the mode Observe would refuse.
func (r *Refusals) WriteObserved(req *noderestriction.Request, scope *decision.ScopeRefusal) {
	if r.allowsObserved(req.User) {
		r.logObserved(admissionRequest(req, new(line).add("type", typeAdmit).identity("", req.User)), scope)
	}
}

// allowsObserved reports whether a line about an account may be written now. An account has a share of
// the limit, as a node has.
func (r *Refusals) allowsObserved(account string) bool {
	return r.logger.Enabled() && r.limit.allows(account)
}

func (r *Refusals) logObserved(l *line, scope *decision.ScopeRefusal) {
	r.log(observed, l.add("code", string(scope.Code)).add("nodescope", scope.Scope).add("reason", scope.Message()), nil)
}

const (
	// summaryAfter is the time from the first dropped line to the line with the number of
	// dropped lines.
	summaryAfter = 10 * time.Second
	// maxShares limits how many nodes have a share of their own at once.
	maxShares = 1024
)

// limit decides which lines are written, and counts the others.
type limit struct {
	opts    RefusalOptions
	summary func(n int)
	total   *rate.Limiter

	mu      sync.Mutex
	shares  map[string]*rate.Limiter
	leftOut int
	timer   *time.Timer // runs while leftOut is not 0
}

func newLimit(opts RefusalOptions, summary func(n int)) *limit {
	return &limit{
		opts: opts, summary: summary, total: rate.NewLimiter(rate.Limit(opts.PerSecond), opts.Burst),
		shares: map[string]*rate.Limiter{},
	}
}

// allows reports whether a line about a node may be written now.
func (l *limit) allows(node string) bool {
	now := time.Now()
	l.mu.Lock()
	allowed := l.share(node).AllowN(now, 1) && l.total.AllowN(now, 1)
	if !allowed {
		if l.leftOut++; l.leftOut == 1 {
			l.timer = time.AfterFunc(summaryAfter, l.flush)
		}
	}
	l.mu.Unlock()
	if !allowed {
		l.opts.NotLogged(1)
	}
	return allowed
}

// share returns the limit of one node, which is half of the total. If there are too many
// nodes, all shares are reset; the total limit holds in any case.
func (l *limit) share(node string) *rate.Limiter {
	share := l.shares[node]
	if share == nil {
		if len(l.shares) >= maxShares {
			clear(l.shares)
		}
		share = rate.NewLimiter(rate.Limit(l.opts.PerSecond/2), (l.opts.Burst+1)/2)
		l.shares[node] = share
	}
	return share
}

// flush writes the number of dropped lines.
func (l *limit) flush() {
	l.mu.Lock()
	n := l.leftOut
	if l.leftOut = 0; l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	if n > 0 {
		l.summary(n)
	}
}
