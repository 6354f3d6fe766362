package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// outcome is the result of one event of a kubelet. It is small, because there is one for
// each event.
type outcome struct {
	by who
	// key is the same for the stages of a long-running request; other requests have one
	// stage.
	key stageKey
	// last is true for the last stage of a request.
	last, long bool
	logged     answered
	// examined is true for a write that NodeRestriction examined.
	examined bool
	at       time.Time
	// detail is nil for requests of nodes that were allowed and would be allowed.
	detail *detail
}

// detail is the detail of a request that a report lists.
type detail struct {
	answer answer
	asked  request
	// groups are the sorted groups of asked, and selectors its selectors if an authorizer
	// reads them.
	groups    string
	selectors selectors
	// written is the object that the request writes, with the name that admission sees.
	written auditlog.Object
	// acted is the node for which the request is made; source and agent are its address
	// and user agent. They are set if the user does not conform.
	acted, source, agent string
	// refusedBy and reason are the refusal according to the log.
	refusedBy, reason string
}

type part struct {
	outcomes    []outcome
	first, last time.Time
	answered    bool
}

// worker has the paths and the object that one worker reuses for all of its events.
type worker struct {
	paths  paths
	object auditlog.Object // of the current event
}

func (p *part) clear() {
	clear(p.outcomes) // drops their references
	p.outcomes, p.first, p.last, p.answered = p.outcomes[:0], time.Time{}, time.Time{}, false
}

// add evaluates an event if it belongs to a kubelet.
func (ev *Evaluators) add(ctx context.Context, p *part, w *worker, e *auditlog.Event) {
	if at := e.Received; !at.IsZero() {
		if p.first.IsZero() || at.Before(p.first) {
			p.first = at
		}
		if at.After(p.last) {
			p.last = at
		}
	}
	if !e.Answered() {
		return
	}
	p.answered = true
	w.paths.correct(e, &w.object)
	o := outcome{last: e.Last(), long: takesLong(e), at: e.Received, logged: answerOf(e)}
	if o.logged == answeredUnknown {
		if strings.HasPrefix(e.UserAgent, kubeletAgent) {
			o.setKey(e)
			p.outcomes = append(p.outcomes, o)
		}
		return
	}
	by, isKubelet := identify(e)
	if !isKubelet {
		return
	}
	o.by = by
	o.setKey(e)
	var asked request
	w.paths.requestOf(e, &asked)
	if ev.Extra {
		asked.Extra = e.Extra(userOf(e))
	}
	result := ev.evaluate(ctx, &o, e, &asked)
	o.examined = result.examined
	if !by.standing.conforms() || o.logged == answeredRefused || result.err != nil || result.refusedBy != "" || result.unexamined != "" {
		o.detail = ev.detailOf(e, by, result, asked)
	}
	p.outcomes = append(p.outcomes, o)
}

func (ev *Evaluators) detailOf(e *auditlog.Event, by who, result answer, asked request) *detail {
	d := &detail{answer: result, asked: asked, groups: sortedGroups(asked.Groups), selectors: ev.relevantSelectors(&asked)}
	if e.Object != nil {
		d.written = *e.Object
	}
	if !by.standing.conforms() {
		d.acted, d.source, d.agent = actedFor(e, &asked), e.Source(), e.UserAgent
	}
	if answerOf(e) == answeredRefused {
		d.refusedBy, d.reason = refusalOf(e)
	}
	return d
}

func (o *outcome) setKey(e *auditlog.Event) {
	if o.long {
		// The audit id alone is not enough, because clients may choose it. All stages have the time at which the request was received.
		o.key = hashed(e.AuditID, e.User.Name, e.Verb, e.RequestURI, e.Received.UTC().Format(time.RFC3339Nano))
	}
}

// evaluate asks the evaluators, unless the request was not decided at the time.
func (ev *Evaluators) evaluate(ctx context.Context, o *outcome, e *auditlog.Event, asked *request) answer {
	if o.logged == answeredNothing {
		return answer{}
	}
	result := ev.authorize(ctx, asked, o.by)
	if result.err == nil && result.refusedBy == "" {
		return ev.admit(ctx, e, asked, o.by)
	}
	return result
}

func refusalOf(e *auditlog.Event) (by, reason string) {
	if e.Annotations.Decision == auditlog.Allowed {
		return ByAdmission, shortened(e.Status.Message)
	}
	if e.Annotations.Reason != "" {
		return ByAuthorization, shortened(e.Annotations.Reason)
	}
	return ByAuthorization, shortened(e.Status.Message)
}

// shortened bounds a text of the log for a report.
func shortened(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// Run reads a log, or a part of one, and evaluates its requests. A [Merger] merges the reports of parts.
func Run(ctx context.Context, files []auditlog.File, ev *Evaluators, opts auditlog.Options) (*Partial, error) {
	c, named, opened := newCollector(ctx, ev), PartialFiles(files), 0
	opts.Opened = func(_ auditlog.File, first []byte) {
		if len(first) > 0 {
			sum := sha256.Sum256(first)
			named[opened].Begins = hex.EncodeToString(sum[:])
		}
		opened++
	}
	read, err := auditlog.Read(ctx, files, auditlog.Sink[*part]{
		New: func() *part { return new(part) },
		Event: func() func(*part, *auditlog.Event) {
			w := &worker{paths: newPaths()}
			return func(p *part, e *auditlog.Event) { ev.add(ctx, p, w, e) }
		},
		Merge: c.merge,
	}, opts)
	if err != nil {
		return nil, err
	}
	return c.partial(read, named), nil
}
