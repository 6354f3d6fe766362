package replay

import (
	"context"
	"hash/maphash"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
)

// outcome is what one event of a kubelet came to. There is one for each, so that it
// is small.
type outcome struct {
	by who
	// key is the same for the stages of one request.
	key uint64
	// last is true for the end of a request, and long for one of which the beginning of
	// the answer is noted too.
	last, long bool
	logged     answered
	// examined is true for a write that NodeRestriction looked at.
	examined bool
	at       time.Time
	// detail is nil for requests of which there is no more to say: those of nodes
	// that were allowed and would be.
	detail *detail
}

// detail is what else is to be said of a request.
type detail struct {
	answer answer
	asked  request
	// groups are those of asked, in order, and selectors its selectors where an
	// authorizer looks at them.
	groups    string
	selectors selectors
	// written is what the request writes, by the name that admission sees.
	written auditlog.Object
	// acted is the node that the request is made for; source and agent are where it
	// came from. They are looked for where the user does not conform.
	acted, source, agent string
	// refusedBy and reason are what the log says of a refusal.
	refusedBy, reason string
}

// part is what came of a part of the log.
type part struct {
	outcomes    []outcome
	first, last time.Time
	answered    bool
	hash        maphash.Hash
	paths       paths
	object      auditlog.Object // of the event that is looked at
}

func (p *part) clear() {
	clear(p.outcomes) // lets go of what they hold
	p.outcomes, p.first, p.last, p.answered = p.outcomes[:0], time.Time{}, time.Time{}, false
}

// add evaluates an event, if a kubelet is behind it.
func (ev *Evaluators) add(ctx context.Context, p *part, e *auditlog.Event) {
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
	p.paths.correct(e, &p.object)
	o := outcome{last: e.Last(), long: takesLong(e), at: e.Received, logged: answerOf(e)}
	if o.logged == answeredUnknown {
		if strings.HasPrefix(e.UserAgent, kubeletAgent) {
			o.key = p.keyOf(e)
			p.outcomes = append(p.outcomes, o)
		}
		return
	}
	by, isKubelet := identify(e)
	if !isKubelet {
		return
	}
	o.by, o.key = by, p.keyOf(e)
	var asked request
	p.paths.requestOf(e, &asked)
	if ev.Extra {
		asked.Extra = e.Extra(userOf(e))
	}
	said := ev.evaluate(ctx, &o, e, &asked)
	o.examined = said.examined
	if !by.standing.conforms() || o.logged == answeredRefused || said.remarkable() {
		o.detail = ev.detailOf(e, by, said, asked)
	}
	p.outcomes = append(p.outcomes, o)
}

func (ev *Evaluators) detailOf(e *auditlog.Event, by who, said answer, asked request) *detail {
	d := &detail{answer: said, asked: asked, groups: sortedGroups(asked.Groups), selectors: ev.selectorsLookedAt(&asked)}
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

// keyOf tells requests apart. The audit id alone does not, for clients may choose it.
func (p *part) keyOf(e *auditlog.Event) uint64 {
	p.hash.Reset()
	for _, text := range [...]string{e.AuditID, e.User.Name, e.Verb, e.RequestURI} {
		_, _ = p.hash.WriteString(text) // never fails
		_ = p.hash.WriteByte(0)
	}
	return p.hash.Sum64()
}

// evaluate asks the evaluators, unless nobody decided about the request then.
func (ev *Evaluators) evaluate(ctx context.Context, o *outcome, e *auditlog.Event, asked *request) answer {
	if o.logged == answeredNothing {
		return answer{}
	}
	said := ev.authorize(ctx, asked, o.by)
	if said.err == nil && said.refusedBy == "" {
		return ev.admit(ctx, e, asked, o.by)
	}
	return said
}

// refusalOf is who refused, and why, by what the log says.
func refusalOf(e *auditlog.Event) (by, reason string) {
	if e.Annotations.Decision == auditlog.Allowed {
		return ByAdmission, shortened(e.Status.Message)
	}
	if e.Annotations.Reason != "" {
		return ByAuthorization, shortened(e.Annotations.Reason)
	}
	return ByAuthorization, shortened(e.Status.Message)
}

// shortened is a text of others, for a report.
func shortened(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}
