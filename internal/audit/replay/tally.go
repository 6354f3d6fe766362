package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/nodeauthz"
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

// distinct identifies an entry of a report, but for the node: the user, the request and
// the answer.
type distinct struct {
	user, groups                            string
	standing                                Standing
	verb, group, resource, sub, space, name string
	selectors                               selectors
	// by is who refused, for refusals of the log.
	by string
	answerKey
}

// answerKey is the answer of the evaluators to a request: an entry of a report has one
// answer.
type answerKey struct {
	evaluators string
	by         string
	code       verdict.Code
	caveat     Caveat
	unexamined Unexamined
}

// selectors are the selectors of a request in canonical form.
type selectors struct{ fields, labels string }

func (o *outcome) distinct(by string) distinct {
	d, q := o.detail, &o.detail.asked
	key := distinct{
		user: q.User, groups: d.groups, standing: o.by.standing,
		verb: q.Verb, group: q.Group, resource: q.Resource, sub: q.Subresource,
		space: q.Namespace, name: q.Name, selectors: d.selectors, by: by, answerKey: d.answer.key(),
	}
	if !q.ResourceRequest {
		key.name = q.Path
	}
	if by == ByNodeRestriction || by == ByAdmission {
		key.name = d.written.Name
	}
	return key
}

// distinctOf returns the key of an entry of a report.
func distinctOf(r *Refusal) distinct {
	return distinct{
		user: r.Identity, groups: sortedGroups(r.Groups), standing: r.Standing,
		verb: r.Verb, group: r.Group, resource: r.Resource, sub: r.Subresource, space: r.Namespace, name: r.Name + r.Path,
		selectors: selectors{r.FieldSelector, r.LabelSelector}, by: r.By,
		answerKey: answerKey{evaluators: r.Evaluators, code: r.Code, caveat: r.Caveat},
	}
}

// key returns the answer without its texts.
func (a *answer) key() answerKey {
	switch {
	case a.err != nil:
		return answerKey{evaluators: saysUndecided}
	case a.unexamined != "":
		return answerKey{evaluators: saysUndecided, unexamined: a.unexamined}
	case a.refusedBy != "":
		return answerKey{evaluators: saysRefuse, by: a.refusedBy, code: a.code, caveat: a.caveat}
	}
	return answerKey{evaluators: saysAllow}
}

// sortedGroups returns groups in canonical form: order does not matter.
func sortedGroups(groups []string) string {
	return strings.Join(slices.Sorted(slices.Values(groups)), "\n")
}

// relevantSelectors returns the selectors of a request that an authorizer reads. The Node
// authorizer reads only the node name in the field selectors of some lists; configured
// authorizers may read all selectors.
func (ev *Evaluators) relevantSelectors(req *request) selectors {
	if len(req.FieldSelector)+len(req.LabelSelector) == 0 {
		return selectors{}
	}
	if !ev.Extra {
		switch ev.Node.Decide(req).Code {
		case nodeauthz.OwnFieldSelector, nodeauthz.FieldSelectorRequired:
		default:
			return selectors{}
		}
	}
	var fields, labels []string
	for _, r := range req.FieldSelector {
		if ev.Extra || r.Field == nodeNameField {
			fields = append(fields, r.Field+string(r.Operator)+r.Value)
		}
	}
	if ev.Extra {
		for _, r := range req.LabelSelector {
			labels = append(labels, r.String())
		}
	}
	slices.Sort(fields)
	slices.Sort(labels)
	return selectors{strings.Join(fields, ","), strings.Join(labels, ",")}
}
