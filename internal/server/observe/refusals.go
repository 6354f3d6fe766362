package observe

import (
	"context"
	"strings"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
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
