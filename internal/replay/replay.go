package replay

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
)

// Run reads a log and evaluates its requests. The report is nil if [auditlog.Read] returns
// an error.
func Run(ctx context.Context, files []auditlog.File, ev *Evaluators, opts auditlog.Options) (*Report, auditlog.Summary, error) {
	m := newMerger(ctx, ev)
	seed := maphash.MakeSeed()
	read, err := auditlog.Read(ctx, files, auditlog.Sink[*part]{
		New: func() *part {
			p := &part{paths: newPaths()}
			p.hash.SetSeed(seed)
			return p
		},
		Event: func(p *part, e *auditlog.Event) { ev.add(ctx, p, e) },
		Merge: m.merge,
	}, opts)
	if err != nil {
		return nil, read, err
	}
	return m.report(read), read, nil
}

// merger merges outcomes in the order of the log.
type merger struct {
	ctx    context.Context
	ev     *Evaluators
	totals Totals

	would, refused, undecided *tally
	ids                       *identities
	stages                    *stages
	unexamined                map[NotExamined]int
	first, last               time.Time
	answered                  bool
}

func newMerger(ctx context.Context, ev *Evaluators) *merger {
	return &merger{
		ctx: ctx, ev: ev, would: newTally(), refused: newTally(), undecided: newTally(),
		ids: newIdentities(), stages: newStages(), unexamined: map[NotExamined]int{},
	}
}

func (m *merger) merge(p *part) {
	if !p.first.IsZero() && (m.first.IsZero() || p.first.Before(m.first)) {
		m.first = p.first
	}
	if p.last.After(m.last) {
		m.last = p.last
	}
	m.answered = m.answered || p.answered
	for i := range p.outcomes {
		if o := &p.outcomes[i]; !m.stages.counted(o.key, o.last, o.long) {
			m.add(o)
		}
	}
	p.clear()
}

func (m *merger) add(o *outcome) {
	if o.logged == answeredUnknown {
		m.totals.Unauthenticated++
		return
	}
	m.count(o)
	node := m.ids.add(o)
	switch o.logged {
	case answeredAllowed:
		m.totals.Allowed++
		m.addAllowed(o, node)
	case answeredRefused:
		m.totals.Refused++
		m.addRefused(o, node)
	default:
		m.totals.Unanswered++
	}
}

func (m *merger) count(o *outcome) {
	m.totals.Requests++
	switch {
	case o.by.standing == Conforming:
		m.totals.Conforming++
	case o.by.standing == Bootstrapping:
		m.totals.Bootstrapping++
	default:
		m.totals.Nonconforming++
	}
	if o.by.impersonated {
		m.totals.Impersonated++
	}
}

func (m *merger) addAllowed(o *outcome, node string) {
	if o.examined {
		m.totals.Writes++
	}
	d := o.detail
	if d == nil {
		return
	}
	switch {
	case d.answer.unexamined != "":
		m.totals.Writes++
		m.totals.NotExamined++
		m.unexamined[NotExamined{
			Verb: d.asked.Verb, Group: d.written.Group, Resource: d.written.Resource, Subresource: d.written.Subresource,
			Why: d.answer.unexamined,
		}]++
	case d.answer.err != nil:
		key := o.distinct(node, "")
		if known := m.undecided.find(key); known != nil {
			m.undecided.again(known, o.at)
			return
		}
		r := o.refusal(node)
		r.Error = d.answer.err.Error()
		m.undecided.add(key, r, o.at)
	case d.answer.refusedBy != "":
		m.addWouldBe(o, node)
	}
}

func (m *merger) addWouldBe(o *outcome, node string) {
	d := o.detail
	key := o.distinct(node, d.answer.refusedBy)
	for _, t := range []*tally{m.would, m.undecided} {
		if known := t.find(key); known != nil {
			t.again(known, o.at)
			return
		}
	}
	r := o.refusal(node)
	r.By, r.Code, r.Caveat = d.answer.refusedBy, d.answer.code, d.answer.caveat
	if d.answer.reason.Code != "" {
		r.Message, r.Hint = d.answer.reason.Message, d.answer.reason.Hint
	} else if !m.would.full() || m.ev.Missing != nil {
		reason, unsure := m.ev.explain(m.ctx, &d.asked)
		r.Code, r.Message, r.Hint = cmp.Or(reason.Code, r.Code), reason.Message, reason.Hint
		if unsure != "" {
			r.Error = unsure
			m.undecided.add(key, r, o.at)
			return
		}
	}
	if !m.would.full() && !o.by.standing.conforms() && node != "" {
		r.AsNode = m.ev.asNode(m.ctx, &d.asked, node)
	}
	m.would.add(key, r, o.at)
}

// addRefused adds a refusal of the log with the answer of the evaluators.
func (m *merger) addRefused(o *outcome, node string) {
	d := o.detail
	key := o.distinct(node, d.refusedBy)
	if known := m.refused.find(key); known != nil {
		m.refused.again(known, o.at)
		return
	}
	r := o.refusal(node)
	r.By, r.Reason, r.Evaluators = d.refusedBy, d.reason, saysAllow
	switch {
	case d.answer.err != nil:
		r.Evaluators, r.Error = saysUndecided, d.answer.err.Error()
	case d.answer.unexamined != "":
		r.Evaluators, r.Error = saysUndecided, string(d.answer.unexamined)
	case d.answer.refusedBy != "":
		r.Evaluators, r.Code, r.Caveat = saysRefuse, d.answer.code, d.answer.caveat
		reason, unsure := d.answer.reason, ""
		if reason.Code == "" && !m.refused.full() {
			reason, unsure = m.ev.explain(m.ctx, &d.asked)
		}
		r.Code, r.Message, r.Hint = cmp.Or(reason.Code, r.Code), reason.Message, reason.Hint
		if unsure != "" {
			r.Evaluators, r.Error = saysUndecided, unsure
		}
	}
	m.refused.add(key, r, o.at)
}

func (o *outcome) refusal(node string) Refusal {
	d, q := o.detail, &o.detail.asked
	r := Refusal{
		Node: node, Identity: q.User, Standing: o.by.standing, Groups: slices.Sorted(slices.Values(q.Groups)),
		Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
		Path: q.Path, FieldSelector: d.selectors.fields, LabelSelector: d.selectors.labels,
	}
	if q.ResourceRequest && (d.answer.refusedBy == ByNodeRestriction && o.logged == answeredAllowed || d.refusedBy == ByAdmission) {
		r.Name = d.written.Name
	}
	return r
}

func (m *merger) report(read auditlog.Summary) *Report {
	r := &Report{
		Totals: m.totals, WouldBeRefused: m.would.list(), Refused: m.refused.list(),
		Nonconforming: m.ids.list(), Nodes: m.ids.summary(m.ev.State), NotExamined: m.notExamined(),
	}
	if m.undecided.total > 0 {
		r.Undecided = m.undecided.list()
	}
	more := More{WouldBeRefused: m.would.remainder(), Refused: m.refused.remainder(), Undecided: m.undecided.remainder()}
	if len(more.WouldBeRefused)+len(more.Refused)+len(more.Undecided) > 0 {
		r.More = &more
	}
	t := &r.Totals
	t.Files, t.Lines, t.Events = read.Files, read.Lines, read.Events
	t.BrokenLines, t.UnfinishedLines = len(read.Broken), len(read.Unfinished)
	t.WouldBeRefused, t.NotInState, t.Undecided = m.would.total, m.would.caveats, m.undecided.total
	t.MaybeTwice = m.stages.doubtful
	if !m.first.IsZero() {
		first, last := m.first.UTC(), m.last.UTC()
		t.First, t.Last = &first, &last
	}
	t.Duration = m.last.Sub(m.first).String()
	r.onlyReceived = read.Events > 0 && !m.answered
	return r
}

func (m *merger) notExamined() []NotExamined {
	var all []NotExamined
	for kind, n := range m.unexamined {
		kind.Count = n
		all = append(all, kind)
	}
	slices.SortFunc(all, func(a, b NotExamined) int {
		return cmp.Or(
			cmp.Compare(b.Count, a.Count), strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
			strings.Compare(a.Subresource, b.Subresource), strings.Compare(a.Verb, b.Verb), cmp.Compare(a.Why, b.Why),
		)
	})
	return all
}
