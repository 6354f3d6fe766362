package observe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Differences between this server and the in-tree parts of the API server.
const (
	// stricter: the in-tree part allows a request that this server would refuse.
	stricter = "stricter"
	// broader: this server would allow a request that the in-tree Node authorizer does not.
	broader = "broader"
	// notCompared: this server could not decide, so there is nothing to compare.
	notCompared = "undecided"
)

const (
	// comparisonTime is how long a refused request waits for the same request from behind the Node
	// authorizer. It is longer than the timeout of a webhook.
	comparisonTime = 10 * time.Second
	// maxComparisons bounds the requests that wait.
	maxComparisons = 10_000
)

// Agreement compares what this server would decide with what the in-tree Node authorizer and NodeRestriction
// decide, while the API server uses only the in-tree answers. The API server asks Before the Node authorizer,
// and asks Behind it about the requests that it does not allow. A refusal that Behind is not asked about is
// allowed in-tree. NodeRestriction runs before webhooks, so that it has allowed each write that comes to Admit.
// It is safe for concurrent use.
type Agreement struct {
	metrics  *Metrics
	refusals *Refusals

	mu sync.Mutex
	// waiting are the requests that Before refused and Behind was not asked about yet. Equal requests that
	// wait together are one entry, because a cache of the API server may ask Behind once for all.
	waiting map[string]*time.Timer
}

// NewAgreement returns an Agreement that counts and logs.
func NewAgreement(metrics *Metrics, refusals *Refusals) *Agreement {
	return &Agreement{metrics: metrics, refusals: refusals, waiting: map[string]*time.Timer{}}
}

// Before returns an evaluator that has no opinion, and compares the opinion of the next one.
func (a *Agreement) Before(next decision.Authorize) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		opinion, err := next(ctx, req)
		switch {
		case ctx.Err() != nil: // the API server ended the request, and asks nobody about it
		case err != nil:
			a.undecided(typeAuthorize, opinion.Node, accessLine(req, &opinion), err)
		default:
			a.metrics.compared.WithLabelValues(typeAuthorize).Inc()
			if opinion.Decision != verdict.Allow {
				a.await(req, &opinion)
			}
		}
		return decision.Opinion{Decision: verdict.NoOpinion}, nil
	}
}

// Behind returns an evaluator that has no opinion, and compares the opinion of the next one about requests that
// the in-tree Node authorizer does not allow.
func (a *Agreement) Behind(next decision.Authorize) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		a.arrived(comparisonKey(req))
		if opinion, err := next(ctx, req); err == nil && opinion.Decision == verdict.Allow {
			a.metrics.differences.WithLabelValues(typeAuthorize, broader).Inc()
			a.refusals.differs(broader, opinion.Node, accessLine(req, &opinion))
		}
		return decision.Opinion{Decision: verdict.NoOpinion}, nil
	}
}

// Admit returns an evaluator that allows each write, and compares the answer of the next one.
func (a *Agreement) Admit(next decision.Admit) decision.Admit {
	return func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
		answer := next(ctx, req)
		switch {
		case ctx.Err() != nil:
		case undecided(&answer):
			a.undecided(typeAdmit, answer.Node, admissionLine(req, &answer), answer.Err)
		default:
			a.metrics.compared.WithLabelValues(typeAdmit).Inc()
			if answer.Decision == verdict.Deny {
				a.metrics.differences.WithLabelValues(typeAdmit, stricter).Inc()
				a.refusals.differs(stricter, answer.Node, admissionLine(req, &answer))
			}
		}
		return noderestriction.Answer{
			Decision: verdict.Allow, Code: noderestriction.RestrictionsMet, Node: answer.Node, Status: http.StatusOK,
		}
	}
}

func (a *Agreement) undecided(kind, node string, l *line, err error) {
	a.metrics.differences.WithLabelValues(kind, notCompared).Inc()
	a.refusals.notDecided(node, l, err)
}

var errTooManyComparisons = errors.New("too many requests wait for the decision of the in-tree parts")

// await reports a refusal, unless Behind is asked about the same request in time.
func (a *Agreement) await(req *access.Request, opinion *decision.Opinion) {
	key, l := comparisonKey(req), accessLine(req, opinion)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, waits := a.waiting[key]; waits {
		return
	}
	if len(a.waiting) == maxComparisons {
		a.undecided(typeAuthorize, opinion.Node, l, errTooManyComparisons)
		return
	}
	node := opinion.Node
	a.waiting[key] = time.AfterFunc(comparisonTime, func() {
		if a.arrived(key) {
			a.metrics.differences.WithLabelValues(typeAuthorize, stricter).Inc()
			a.refusals.differs(stricter, node, l)
		}
	})
}

// arrived ends the wait of a request, and reports whether it waited.
func (a *Agreement) arrived(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	timer, waits := a.waiting[key]
	if waits {
		timer.Stop()
		delete(a.waiting, key)
	}
	return waits
}

// comparisonKey is the same for equal requests, and differs for others.
func comparisonKey(req *access.Request) string { return fmt.Sprintf("%#v", *req) }

// differs logs a request about which this server and the in-tree parts differ.
func (r *Refusals) differs(difference, node string, l *line) {
	r.logCompared("request differs from the in-tree decision", node, l.add("difference", difference), nil)
}

// notDecided logs a request that could not be compared.
func (r *Refusals) notDecided(node string, l *line, err error) {
	r.logCompared(notDecided, node, l, err)
}

func (r *Refusals) logCompared(message, node string, l *line, err error) {
	if r.logger.Enabled() && r.limit.allows(node) {
		r.log(message, l, err)
	}
}
