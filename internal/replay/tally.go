package replay

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Bounds of a report, so that memory does not grow with the log. What is kept does not
// depend on the order of the log.
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

// place is where a request comes from: its node, or if the request does not show that, the
// user and the address. The whole log then shows the node.
type place struct {
	Node     string   `json:"node,omitempty"`
	User     string   `json:"user,omitempty"`
	Standing Standing `json:"standing,omitempty"`
	Source   string   `json:"source,omitempty"`
}

// listedKey is the key of an entry.
type listedKey struct {
	// request is the hash of the request without its place. Its first bit is set if there
	// is a caveat, so that refusals without one are kept before those with one.
	request rank
	place   place
}

func (k listedKey) rank() rank {
	r := rankOf(string(k.request[:]), k.place.Node, k.place.User, string(k.place.Standing), k.place.Source)
	r[0] = r[0]>>1 | k.request[0]&caveatBit
	return r
}

const caveatBit = 0x80

// Listed is an entry of a list before the nodes of all requests are known.
type Listed struct {
	Request rank  `json:"request"`
	Place   place `json:"place,omitzero"`
	// Plain is the code of the evaluators before the explanation.
	Plain verdict.Code `json:"plainCode,omitempty"`
	// AsNodes are the answers to the same request of the users of nodes: those nodes that
	// parts of the log show behind the request.
	AsNodes map[string]string `json:"asNodes,omitempty"`
	// Sampled is the time of the request whose texts the entry has: the earliest.
	Sampled time.Time `json:"sampled"`
	Refusal Refusal   `json:"entry"`

	asked *request
}

func (l *Listed) key() listedKey { return listedKey{l.Request, l.Place} }

// texts are the parts of an entry that may differ between its requests.
type texts struct{ message, hint, reason, err string }

func (l *Listed) texts() texts {
	return texts{l.Refusal.Message, l.Refusal.Hint, l.Refusal.Reason, l.Refusal.Error}
}

func (t texts) compare(other texts) int {
	return cmp.Or(
		cmp.Compare(t.message, other.message), cmp.Compare(t.hint, other.hint),
		cmp.Compare(t.reason, other.reason), cmp.Compare(t.err, other.err),
	)
}

// sample takes the texts of an earlier request.
func (l *Listed) sample(at time.Time, t texts) {
	if c := at.Compare(l.Sampled); c > 0 || c == 0 && t.compare(l.texts()) >= 0 {
		return
	}
	l.Sampled = at
	r := &l.Refusal
	r.Message, r.Hint, r.Reason, r.Error = t.message, t.hint, t.reason, t.err
}

// merge adds the requests of another entry with the same key.
func (l *Listed) merge(other *Listed) {
	l.sample(other.Sampled, other.texts())
	l.Refusal.Count += other.Refusal.Count
	l.Refusal.First = earlier(l.Refusal.First, other.Refusal.First)
	l.Refusal.Last = later(l.Refusal.Last, other.Refusal.Last)
	if len(other.AsNodes) > 0 {
		all := maps.Clone(l.AsNodes)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, other.AsNodes)
		l.AsNodes = all
	}
}

// tally is a list of requests with their counts.
type tally struct {
	entries *smallest[listedKey, Listed]
	rest    *remainders
	total   int
	caveats int
}

func newTally() *tally {
	t := &tally{rest: newRemainders()}
	t.entries = newSmallest(MaxDistinct, listedKey.rank, func(_ listedKey, l *Listed) { t.rest.addEntry(l) })
	return t
}

// find returns the entry of a request; nil if there is none.
func (t *tally) find(key listedKey) *Listed { return t.entries.find(key) }

func (t *tally) accepts(key listedKey) bool { return t.entries.accepts(key) }

// add adds an entry, or counts its requests as a remainder if the list is full.
func (t *tally) add(l *Listed) {
	t.count(l.Refusal.Caveat, l.Refusal.Count)
	kept := t.entries.get(l.key())
	switch {
	case kept == nil:
		t.rest.addEntry(l)
	case kept.Refusal.Count == 0:
		*kept = *l
	default:
		kept.merge(l)
	}
}

// again counts a request of an entry. Says returns its texts; it is called only if they may be needed.
func (t *tally) again(l *Listed, at time.Time, says func(*Listed) texts) {
	t.count(l.Refusal.Caveat, 1)
	r := &l.Refusal
	r.Count++
	if at.Before(r.First) {
		r.First = at
	}
	if at.After(r.Last) {
		r.Last = at
	}
	if !at.After(l.Sampled) {
		l.sample(at, says(l))
	}
}

func (t *tally) count(caveat Caveat, n int) {
	t.total += n
	if caveat != "" {
		t.caveats += n
	}
}

// remainderKey is the kind of a request beyond the bound of a list. Its zero place and
// resource are those of all kinds beyond the bound of the remainders.
type remainderKey struct {
	place                place
	group, resource, sub string
	code                 verdict.Code
}

func (k remainderKey) rank() rank {
	return rankOf(k.place.Node, k.place.User, string(k.place.Standing), k.place.Source, k.group, k.resource, k.sub, string(k.code))
}

// remainders counts requests beyond the bound of a list.
type remainders struct {
	kinds *smallest[remainderKey, int]
	// beyond counts those of further kinds.
	beyond map[verdict.Code]int
}

func newRemainders() *remainders {
	r := &remainders{beyond: map[verdict.Code]int{}}
	r.kinds = newSmallest(MaxRemainders, remainderKey.rank, func(k remainderKey, n *int) { r.beyond[k.code] += *n })
	return r
}

func (r *remainders) addEntry(l *Listed) {
	q := &l.Refusal
	r.add(remainderKey{place: l.Place, group: q.Group, resource: q.Resource, sub: q.Subresource, code: l.Plain}, q.Count)
}

func (r *remainders) add(k remainderKey, n int) {
	if counted := r.kinds.get(k); counted != nil {
		*counted += n
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

// compareRemainders sorts the most frequent first.
func compareRemainders(a, b Remainder) int {
	return cmp.Or(
		cmp.Compare(b.Count, a.Count), strings.Compare(a.Node, b.Node),
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Subresource, b.Subresource),
		cmp.Compare(a.Code, b.Code),
	)
}
