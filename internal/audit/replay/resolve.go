package replay

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// report makes the report of a log, with the nodes of a state. AsNode returns the answer to an entry's request of the
// user of a node; empty if it does not matter.
func (s *sums) report(state []string, asNode func(*listed, string) string) *Report {
	at := s.ids.resolver()
	r := &Report{
		Totals: s.totals, WouldBeRefused: s.would.list(at, asNode), Refused: s.refused.list(at, nil),
		Nonconforming: s.ids.list(), Nodes: s.ids.summary(sets.New(state...)), NotExamined: s.notExamined(),
	}
	if s.undecided.total > 0 {
		r.Undecided = s.undecided.list(at, nil)
	}
	more := More{WouldBeRefused: s.would.rest.list(at), Refused: s.refused.rest.list(at), Undecided: s.undecided.rest.list(at)}
	if len(more.WouldBeRefused)+len(more.Refused)+len(more.Undecided) > 0 {
		r.More = &more
	}
	t := &r.Totals
	t.WouldBeRefused, t.NotInState, t.Undecided = s.would.total, s.would.caveats, s.undecided.total
	if !s.first.IsZero() {
		first, last := s.first.UTC(), s.last.UTC()
		t.First, t.Last = &first, &last
	}
	t.Duration = s.last.Sub(s.first).String()
	r.onlyReceived = t.Events > 0 && !s.answered
	return r
}

func (s *sums) notExamined() []NotExamined {
	var all []NotExamined
	for kind, n := range s.unexamined {
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

// resolver finds the node of a request that does not show it: the only node for which the
// same user acted from the same address, or else the only node of the user.
type resolver struct {
	ids *identities
	// only has the node of each user that acted for one.
	only map[identityKey]string
}

func (ids *identities) resolver() *resolver {
	r := &resolver{ids: ids, only: map[identityKey]string{}}
	for key, n := range ids.pairs {
		if id := ids.all[key.identity]; id != nil && id.acted == n {
			r.only[key.identity] = key.node
		}
	}
	return r
}

func (r *resolver) node(p place) string {
	if p.user == "" {
		return p.node
	}
	if node, known := r.ids.at[address{p.user, p.source}]; known {
		return node
	}
	return r.only[identityKey{p.user, p.standing}]
}

// list returns the entries in order, with their nodes; it is never nil.
func (t *tally) list(at *resolver, asNode func(*listed, string) string) []Refusal {
	merged := make(map[listedKey]*listed, len(t.entries))
	for _, l := range t.entries {
		entry := *l
		entry.Node = at.node(l.key.place)
		key := listedKey{l.key.request, place{node: entry.Node}}
		if known := merged[key]; known != nil {
			known.merge(&entry)
			continue
		}
		merged[key] = &entry
	}
	all := make([]Refusal, 0, len(merged))
	for _, l := range merged {
		r := l.Refusal
		if asNode != nil && r.Node != "" && !r.Standing.conforms() {
			r.AsNode = asNode(l, r.Node)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, compareRefusals)
	return all
}

// list returns the counts with their nodes, the most frequent first.
func (r *remainders) list(at *resolver) []Remainder {
	merged := map[Remainder]int{}
	for k, n := range r.kinds {
		merged[Remainder{Node: at.node(k.place), Group: k.group, Resource: k.resource, Subresource: k.sub, Code: k.code}] += n
	}
	for code, n := range r.beyond {
		merged[Remainder{Code: code}] += n
	}
	var all []Remainder
	for kind, n := range merged {
		kind.Count = n
		all = append(all, kind)
	}
	slices.SortFunc(all, func(a, b Remainder) int {
		return cmp.Or(
			cmp.Compare(b.Count, a.Count), strings.Compare(a.Node, b.Node),
			strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Subresource, b.Subresource),
			cmp.Compare(a.Code, b.Code),
		)
	})
	return all
}

// list returns the nonconforming kubelets, the most frequent first; it is never nil.
func (ids *identities) list() []Identity {
	nodes, told := map[identityKey][]string{}, map[identityKey]int{}
	for key, n := range ids.pairs {
		nodes[key.identity] = append(nodes[key.identity], key.node)
		told[key.identity] += n
	}
	list := make([]Identity, 0, len(ids.all))
	for key, id := range ids.all {
		list = append(list, Identity{
			Username: key.user, Standing: key.standing, Why: key.standing.Why(), Groups: append([]string{}, id.groups...),
			Nodes: append([]string{}, slices.Sorted(slices.Values(nodes[key]))...), MoreNodes: id.acted - told[key],
			UserAgents: append([]string{}, id.agents...), Count: id.count, First: id.first, Last: id.last,
		})
	}
	slices.SortFunc(list, func(a, b Identity) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Username, b.Username), cmp.Compare(a.Standing, b.Standing))
	})
	return list
}

func (ids *identities) summary(state sets.Set[string]) Nodes {
	n := Nodes{NeverConforming: []NeverConforming{}, Silent: []string{}, NotInState: []string{}, NotTold: ids.beyond}
	for _, name := range slices.Sorted(maps.Keys(ids.nodes)) {
		s := ids.nodes[name]
		if !state.Has(name) {
			n.NotInState = append(n.NotInState, name)
		}
		if s.conforms {
			n.Conforming++
			continue
		}
		n.NeverConforming = append(n.NeverConforming, NeverConforming{Name: name, Identities: s.actors, InState: state.Has(name)})
	}
	for _, name := range sets.List(state) {
		if ids.nodes[name] == nil {
			n.Silent = append(n.Silent, name)
		}
	}
	return n
}

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
