package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Bounds of a report, so that memory does not grow with the log.
const (
	// MaxDistinct is how many different requests a list of a report has.
	MaxDistinct = 10_000
	// MaxRemainders is how many remainders it has, and MaxIdentities how many
	// nonconforming users.
	MaxRemainders = 10_000
	MaxIdentities = 10_000
	// MaxNodes is how many nodes of a log are told apart, and in how many pairs with
	// users that act for them.
	MaxNodes = 100_000
	// maxAgents is how many user agents of a user are kept, and maxActors how many
	// users that act for a node.
	maxAgents, maxActors = 5, 16
)

// tally is a list of requests with how often each was made.
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

// add counts a request of a new entry, or one for which there is no room.
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

// compareRefusals puts what is certain first, and then what was asked most often.
func compareRefusals(a, b Refusal) int {
	return cmp.Or(
		cmp.Compare(min(len(a.Caveat), 1), min(len(b.Caveat), 1)),
		cmp.Compare(b.Count, a.Count),
		strings.Compare(a.Node, b.Node), strings.Compare(a.Identity, b.Identity),
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Subresource, b.Subresource),
		strings.Compare(a.Verb, b.Verb), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Path, b.Path), strings.Compare(a.FieldSelector, b.FieldSelector), strings.Compare(a.LabelSelector, b.LabelSelector),
		strings.Compare(a.By, b.By), strings.Compare(a.Evaluators, b.Evaluators), cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Caveat, b.Caveat), strings.Compare(a.Error, b.Error), cmp.Compare(a.Standing, b.Standing),
		slices.Compare(a.Groups, b.Groups),
	)
}

// remainder returns what is not in the list, in order.
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
