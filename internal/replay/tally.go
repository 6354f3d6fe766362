package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Bounds of a report, so that memory does not grow with the log.
const (
	// MaxDistinct is the maximum number of different requests in a list of a report.
	MaxDistinct = 10_000
	// MaxRemainders is the maximum number of remainders, and MaxIdentities that of
	// nonconforming users.
	MaxRemainders = 10_000
	MaxIdentities = 10_000
	// MaxNodes is the maximum number of nodes of a log, and of pairs of a node and a user
	// that acts for it.
	MaxNodes = 100_000
	// maxAgents is the maximum number of user agents of a user, and maxActors that of
	// users that act for a node.
	maxAgents, maxActors = 5, 16
)

// tally is a list of requests with their counts.
type tally struct {
	entries map[distinct]*Refusal
	rest    map[Remainder]int
	total   int
	caveats int
}

func newTally() *tally { return &tally{entries: map[distinct]*Refusal{}, rest: map[Remainder]int{}} }

// find returns the entry of a request; nil if there is none.
func (t *tally) find(key distinct) *Refusal { return t.entries[key] }

func (t *tally) full() bool { return len(t.entries) >= MaxDistinct }

// add adds an entry, or counts the request as a remainder if the list is full.
func (t *tally) add(key distinct, r Refusal, at time.Time) {
	t.total++
	if r.Caveat != "" {
		t.caveats++
	}
	if t.full() {
		t.addRest(Remainder{Node: r.Node, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Code: r.Code})
		return
	}
	r.Count, r.First, r.Last = 1, at, at
	t.entries[key] = &r
}

func (t *tally) addRest(kind Remainder) {
	if _, known := t.rest[kind]; !known && len(t.rest) >= MaxRemainders {
		kind = Remainder{Code: kind.Code}
	}
	t.rest[kind]++
}

// again counts a request of an entry.
func (t *tally) again(r *Refusal, at time.Time) {
	t.total++
	if r.Caveat != "" {
		t.caveats++
	}
	r.Count++
	if at.Before(r.First) {
		r.First = at
	}
	if at.After(r.Last) {
		r.Last = at
	}
}

// list returns the entries in order; it is never nil.
func (t *tally) list() []Refusal {
	all := make([]Refusal, 0, len(t.entries))
	for _, r := range t.entries {
		all = append(all, *r)
	}
	slices.SortFunc(all, compareRefusals)
	return all
}

// compareRefusals sorts refusals without a caveat first, then the most frequent.
func compareRefusals(a, b Refusal) int {
	return cmp.Or(
		cmp.Compare(min(len(a.Caveat), 1), min(len(b.Caveat), 1)),
		cmp.Compare(b.Count, a.Count),
		strings.Compare(a.Node, b.Node), strings.Compare(a.Identity, b.Identity),
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Subresource, b.Subresource),
		strings.Compare(a.Verb, b.Verb), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Path, b.Path), strings.Compare(a.FieldSelector, b.FieldSelector),
		strings.Compare(a.LabelSelector, b.LabelSelector),
		strings.Compare(a.By, b.By), strings.Compare(a.Evaluators, b.Evaluators), cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Caveat, b.Caveat), strings.Compare(a.Error, b.Error), cmp.Compare(a.Standing, b.Standing),
		slices.Compare(a.Groups, b.Groups),
	)
}

// remainder returns the counts of requests beyond the bound of the list, sorted.
func (t *tally) remainder() []Remainder {
	var all []Remainder
	for kind, n := range t.rest {
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
