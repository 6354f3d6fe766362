package replay

import (
	"reflect"
	"time"
)

// sums are what the requests of a log, or the reports of its parts, add up to, in bounded memory.
type sums struct {
	totals                    Totals
	would, refused, undecided *tally
	ids                       *identities
	unexamined                map[NotExamined]int
	first, last               time.Time
	answered                  bool
}

func newSums() *sums {
	return &sums{
		would: newTally(), refused: newTally(), undecided: newTally(), unexamined: map[NotExamined]int{}, ids: &identities{
			all: map[identityKey]*identity{}, nodes: map[string]*seen{}, at: map[address]string{}, pairs: map[pairKey]int{},
		},
	}
}

// saw records when requests of any user were received, and whether any has an answer.
func (s *sums) saw(first, last time.Time, answered bool) {
	if !first.IsZero() && (s.first.IsZero() || first.Before(s.first)) {
		s.first = first
	}
	s.last = later(s.last, last)
	s.answered = s.answered || answered
}
func (s *sums) merge(p *Partial) {
	r := &p.Report
	t := &r.Totals
	var first, last time.Time
	if t.First != nil && t.Last != nil {
		first, last = *t.First, *t.Last
	}
	s.saw(first, last, p.Answered)
	s.totals.add(t)
	var more More
	if r.More != nil {
		more = *r.More
	}
	s.would.merge(r.WouldBeRefused, more.WouldBeRefused, t.WouldBeRefused, t.NotInState)
	s.refused.merge(r.Refused, more.Refused, t.Refused, 0)
	s.undecided.merge(r.Undecided, more.Undecided, t.Undecided, 0)
	for _, kind := range r.NotExamined {
		n := kind.Count
		kind.Count = 0
		s.unexamined[kind] += n
	}
	s.ids.merge(p)
}

// add adds the counts of another part of the log. A report replaces the counts of its lists.
func (t *Totals) add(other *Totals) {
	to, from := reflect.ValueOf(t).Elem(), reflect.ValueOf(other).Elem()
	for i := range to.NumField() {
		if field := to.Field(i); field.Kind() == reflect.Int {
			field.SetInt(field.Int() + from.Field(i).Int())
		}
	}
}

// merge adds a list of the report of a part, which has no texts of single requests.
func (t *tally) merge(list []Refusal, more []Remainder, total, caveats int) {
	for i := range list {
		r := &list[i]
		t.add(&listed{key: listedKey{distinctOf(r), place{node: r.Node}}, plain: r.Code, sampled: r.First, Refusal: *r})
	}
	for _, m := range more {
		if m.Node == "" && m.Resource == "" {
			t.rest.beyond[m.Code] += m.Count
			continue
		}
		t.rest.add(remainderKey{place{node: m.Node}, m.Group, m.Resource, m.Subresource, m.Code}, m.Count)
	}
	t.total += total
	t.caveats += caveats
}

func (ids *identities) merge(p *Partial) {
	for _, i := range p.Report.Nonconforming {
		key := identityKey{i.Username, i.Standing}
		ids.addIdentity(key, identity{
			groups: i.Groups, agents: i.UserAgents, count: i.Count, first: i.First, last: i.Last, acted: i.MoreNodes,
		})
		for _, name := range i.Nodes {
			ids.addPair(pairKey{key, name}, 0)
		}
	}
	for _, name := range p.Conforming {
		if n := ids.node(name); n != nil {
			n.conforms = true
		}
	}
	for _, never := range p.Report.Nodes.NeverConforming {
		if n := ids.node(never.Name); n != nil {
			for _, user := range never.Identities {
				n.actors = bounded(n.actors, user, maxActors)
			}
		}
	}
	ids.beyond += p.Report.Nodes.NotTold
	ids.moreNodes += p.MoreNodes
}
