package replay

import (
	"cmp"
	"context"
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// collector adds outcomes to sums, in the order of the log.
type collector struct {
	ctx context.Context
	ev  *Evaluators
	*sums
	// stages has the last stages of requests whose first was not read.
	stages *stages[*outcome]
}

func newCollector(ctx context.Context, ev *Evaluators) *collector {
	c := &collector{ctx: ctx, ev: ev, sums: newSums()}
	c.stages = newStages(c.add, func(end *outcome) bool { return end.detail != nil })
	return c
}

func (c *collector) merge(p *part) {
	c.saw(p.first, p.last, p.answered)
	for i := range p.outcomes {
		switch o := &p.outcomes[i]; {
		case !o.long:
			c.add(o)
		case o.last:
			end := *o
			c.stages.end(o.key, &end)
		default:
			c.stages.start(o.key)
			c.add(o)
		}
	}
	p.clear()
}

func (c *collector) add(o *outcome) {
	t := &c.totals
	if o.logged == answeredUnknown {
		t.Unauthenticated++
		return
	}
	t.count(o)
	from := c.ids.add(o)
	switch o.logged {
	case answeredAllowed:
		t.Allowed++
		c.addAllowed(o, from)
	case answeredRefused:
		t.Refused++
		c.addRefused(o, from)
	default:
		t.Unanswered++
	}
}

func (t *Totals) count(o *outcome) {
	t.Requests++
	switch {
	case o.by.standing == Conforming:
		t.Conforming++
	case o.by.standing == Bootstrapping:
		t.Bootstrapping++
	default:
		t.Nonconforming++
	}
	if o.by.impersonated {
		t.Impersonated++
	}
}

func (c *collector) addAllowed(o *outcome, from place) {
	if o.examined {
		c.totals.Writes++
	}
	d := o.detail
	if d == nil {
		return
	}
	switch {
	case d.answer.unexamined != "":
		c.totals.Writes++
		c.totals.NotExamined++
		c.unexamined[NotExamined{
			Verb: d.asked.Verb, Group: d.written.Group, Resource: d.written.Resource, Subresource: d.written.Subresource,
			Why: d.answer.unexamined,
		}]++
	case d.answer.err != nil:
		key := listedKey{o.distinct(""), from}
		if known := c.undecided.entries[key]; known != nil {
			c.undecided.again(known, o.at, o.says)
			return
		}
		l := o.listed(key, c.undecided.accepts(key))
		l.Error = d.answer.err.Error()
		c.undecided.addOne(l)
	case d.answer.refusedBy != "":
		c.addWouldBe(o, from)
	}
}

func (c *collector) addWouldBe(o *outcome, from place) {
	d := o.detail
	key := listedKey{o.distinct(d.answer.refusedBy), from}
	for _, t := range []*tally{c.would, c.undecided} {
		if known := t.entries[key]; known != nil {
			t.again(known, o.at, o.says)
			return
		}
	}
	accepted := c.would.accepts(key)
	l := o.listed(key, accepted)
	r := &l.Refusal
	r.By, r.Code, r.Caveat = d.answer.refusedBy, d.answer.code, d.answer.caveat
	if d.answer.reason.Code != "" {
		r.Message, r.Hint = d.answer.reason.Message, d.answer.reason.Hint
	} else if accepted || c.ev.Missing != nil {
		reason, unsure := c.ev.explain(c.ctx, &d.asked)
		r.Code, r.Message, r.Hint = cmp.Or(reason.Code, r.Code), reason.Message, reason.Hint
		if unsure != "" {
			r.Error = unsure
			c.undecided.addOne(l)
			return
		}
	}
	c.would.addOne(l)
}

func (c *collector) addRefused(o *outcome, from place) {
	d := o.detail
	key := listedKey{o.distinct(d.refusedBy), from}
	if known := c.refused.entries[key]; known != nil {
		c.refused.again(known, o.at, o.says)
		return
	}
	accepted := c.refused.accepts(key)
	l := o.listed(key, accepted)
	r := &l.Refusal
	r.By, r.Reason, r.Evaluators = d.refusedBy, d.reason, saysAllow
	switch {
	case d.answer.err != nil:
		r.Evaluators, r.Error = saysUndecided, d.answer.err.Error()
	case d.answer.unexamined != "":
		r.Evaluators, r.Error = saysUndecided, string(d.answer.unexamined)
	case d.answer.refusedBy != "":
		r.Evaluators, r.Code, r.Caveat = saysRefuse, d.answer.code, d.answer.caveat
		reason, unsure := d.answer.reason, ""
		if reason.Code == "" && accepted {
			reason, unsure = c.ev.explain(c.ctx, &d.asked)
		}
		r.Code, r.Message, r.Hint = cmp.Or(reason.Code, r.Code), reason.Message, reason.Hint
		if unsure != "" {
			r.Evaluators, r.Error = saysUndecided, unsure
		}
	}
	c.refused.addOne(l)
}

// says returns the texts of a request for its entry. What explains an answer is the same for
// all requests of the entry.
func (o *outcome) says(l *listed) texts {
	d, t := o.detail, l.texts()
	if d.answer.reason.Code != "" {
		t.message, t.hint = d.answer.reason.Message, d.answer.reason.Hint
	}
	if d.answer.err != nil {
		t.err = d.answer.err.Error()
	}
	t.reason = d.reason
	return t
}

func (o *outcome) listed(key listedKey, accepted bool) *listed {
	d, q := o.detail, &o.detail.asked
	l := &listed{key: key, sampled: o.at}
	if d.answer.err == nil && d.answer.unexamined == "" {
		l.plain = d.answer.code
	}
	l.Refusal = Refusal{
		Node: key.place.node, Identity: q.User, Standing: o.by.standing, Groups: slices.Sorted(slices.Values(q.Groups)),
		Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
		Path: q.Path, FieldSelector: d.selectors.fields, LabelSelector: d.selectors.labels, Count: 1, First: o.at, Last: o.at,
	}
	if q.ResourceRequest && (d.answer.refusedBy == ByNodeRestriction && o.logged == answeredAllowed || d.refusedBy == ByAdmission) {
		l.Name = d.written.Name
	}
	if accepted && !o.by.standing.conforms() {
		l.asked = q
	}
	return l
}

func (c *collector) report(read auditlog.Summary) *Report {
	c.stages.eachEnd(c.add)
	t := &c.totals
	t.Files, t.Lines, t.Events = t.Files+read.Files, t.Lines+read.Lines, t.Events+read.Events
	t.BrokenLines += len(read.Broken)
	t.UnfinishedLines += len(read.Unfinished)
	t.MaybeTwice += c.stages.doubtful
	return c.sums.report(c.ev.State.NodeNames(), c.asNode)
}

func (c *collector) asNode(l *listed, node string) string {
	if l.asked == nil {
		return ""
	}
	return c.ev.asNode(c.ctx, l.asked, node)
}
