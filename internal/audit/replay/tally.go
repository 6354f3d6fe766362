package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Bounds of a report, so that memory does not grow with the log. The first of a log are kept.
const (
	// MaxDistinct is the maximum number of different requests without a caveat in a list of a
	// report, and of those with a caveat.
	MaxDistinct = 10_000
	// MaxRemainders is the maximum number of remainders, and MaxIdentities the maximum
	// number of nonconforming users.
	MaxRemainders = 10_000
	MaxIdentities = 10_000
	// MaxNodes is the maximum number of nodes of a log, and of pairs of a node and a user
	// that acts for it.
	MaxNodes = 100_000
	// maxAgents is the maximum number of user agents of a user, and maxActors the maximum
	// number of users that act for a node.
	maxAgents, maxActors = 5, 16
)

// place is where a request comes from: its node, or if the request does not show that, the
// user and the address. The whole log then shows the node.
type place struct {
	node, user string
	standing   Standing
	source     string
}

type listedKey struct {
	request distinct
	place   place
}

// listed is an entry of a list before the nodes of all requests are known.
type listed struct {
	key listedKey
	// plain is the code of the evaluators before the explanation.
	plain verdict.Code
	// sampled is the time of the request whose texts the entry has: the earliest.
	sampled time.Time
	Refusal

	asked *request
}

// texts are the parts of an entry that may differ between its requests.
type texts struct{ message, hint, reason, err string }

func (l *listed) texts() texts {
	return texts{l.Message, l.Hint, l.Reason, l.Error}
}

func (t texts) compare(other texts) int {
	return cmp.Or(
		cmp.Compare(t.message, other.message), cmp.Compare(t.hint, other.hint),
		cmp.Compare(t.reason, other.reason), cmp.Compare(t.err, other.err),
	)
}

// sample takes the texts of an earlier request.
func (l *listed) sample(at time.Time, t texts) {
	if c := at.Compare(l.sampled); c > 0 || c == 0 && t.compare(l.texts()) >= 0 {
		return
	}
	l.sampled = at
	l.Message, l.Hint, l.Reason, l.Error = t.message, t.hint, t.reason, t.err
}

// merge adds the requests of another entry with the same key.
func (l *listed) merge(other *listed) {
	l.sample(other.sampled, other.texts())
	l.Count += other.Count
	l.First = earlier(l.First, other.First)
	l.Last = later(l.Last, other.Last)
	l.AsNode = cmp.Or(l.AsNode, other.AsNode)
}

// tally is a list of requests with their counts.
type tally struct {
	entries map[listedKey]*listed
	// full counts the entries with a caveat (true) and without.
	full  map[bool]int
	rest  *remainders
	total int
	// caveats is how many of total have a caveat.
	caveats int
}

func newTally() *tally {
	return &tally{
		entries: map[listedKey]*listed{}, full: map[bool]int{},
		rest: &remainders{kinds: map[remainderKey]int{}, beyond: map[verdict.Code]int{}},
	}
}

// accepts reports whether a new entry would be kept.
func (t *tally) accepts(key listedKey) bool { return t.full[key.request.caveat != ""] < MaxDistinct }

// add adds an entry, or counts its requests as a remainder if the list is full.
func (t *tally) add(l *listed) {
	if known := t.entries[l.key]; known != nil {
		known.merge(l)
		return
	}
	if !t.accepts(l.key) {
		t.rest.add(remainderKey{l.key.place, l.Group, l.Resource, l.Subresource, l.plain}, l.Count)
		return
	}
	t.entries[l.key] = l
	t.full[l.key.request.caveat != ""]++
}

func (t *tally) addOne(l *listed) {
	t.count(l.Caveat)
	t.add(l)
}

// again counts a request of an entry. Says returns its texts; it is called only if they may be needed.
func (t *tally) again(l *listed, at time.Time, says func(*listed) texts) {
	t.count(l.Caveat)
	l.Count++
	l.First, l.Last = earlier(l.First, at), later(l.Last, at)
	if !at.After(l.sampled) {
		l.sample(at, says(l))
	}
}

func (t *tally) count(caveat Caveat) {
	t.total++
	if caveat != "" {
		t.caveats++
	}
}

// remainderKey is the kind of a request beyond the bound of a list. A zero place and
// resource stand for all kinds beyond the bound of the remainders.
type remainderKey struct {
	place                place
	group, resource, sub string
	code                 verdict.Code
}

// remainders counts requests beyond the bound of a list.
type remainders struct {
	kinds map[remainderKey]int
	// beyond counts the requests of further kinds.
	beyond map[verdict.Code]int
}

func (r *remainders) add(k remainderKey, n int) {
	if _, known := r.kinds[k]; known || len(r.kinds) < MaxRemainders {
		r.kinds[k] += n
		return
	}
	r.beyond[k.code] += n
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
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
		strings.Compare(a.Message, b.Message), strings.Compare(a.Reason, b.Reason), a.First.Compare(b.First), a.Last.Compare(b.Last),
	)
}
