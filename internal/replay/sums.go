package replay

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// sums are what the requests of a log add up to, in bounded memory. The order in which
// requests are added does not matter. So the sums of the parts of a log, added up, are the
// sums of the log.
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
		would: newTally(), refused: newTally(), undecided: newTally(), ids: newIdentities(), unexamined: map[NotExamined]int{},
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

func (s *sums) addRead(read auditlog.Summary, doubtful int) {
	t := &s.totals
	t.Files += read.Files
	t.Lines += read.Lines
	t.Events += read.Events
	t.BrokenLines += len(read.Broken)
	t.UnfinishedLines += len(read.Unfinished)
	t.MaybeTwice += doubtful
}

// Sums is the form of sums in a partial report.
type Sums struct {
	Totals      *Totals       `json:"totals,omitempty"`
	First       time.Time     `json:"first,omitzero"`
	Last        time.Time     `json:"last,omitzero"`
	Answered    bool          `json:"answered,omitempty"`
	Would       *Tally        `json:"wouldBeRefused,omitempty"`
	Refused     *Tally        `json:"refused,omitempty"`
	Undecided   *Tally        `json:"undecided,omitempty"`
	NotExamined []NotExamined `json:"notExamined,omitempty"`
	Seen        *Seen         `json:"seen,omitempty"`
}

// Tally is a list of requests.
type Tally struct {
	Total   int      `json:"total"`
	Caveats int      `json:"caveats,omitempty"`
	Entries []Listed `json:"entries"`
	// Rest and Beyond count requests beyond the bound of the list.
	Rest   []Rest               `json:"rest,omitempty"`
	Beyond map[verdict.Code]int `json:"beyond,omitempty"`
}

// Rest counts requests of a kind. The node of its remainder follows from its place.
type Rest struct {
	Place place     `json:"place,omitzero"`
	Kind  Remainder `json:"kind"`
}

// Seen is what a log shows about kubelets and nodes.
type Seen struct {
	// Requests are those of nonconforming kubelets; Shown are those that show something
	// about a node.
	Requests   int         `json:"requests,omitempty"`
	Shown      int         `json:"shown,omitempty"`
	Identities []SeenUser  `json:"identities,omitempty"`
	Nodes      []SeenNode  `json:"nodes,omitempty"`
	Addresses  []SeenAt    `json:"addresses,omitempty"`
	Pairs      []SeenActor `json:"pairs,omitempty"`
}

// SeenUser is a nonconforming kubelet.
type SeenUser struct {
	User     string    `json:"user"`
	Standing Standing  `json:"standing"`
	Groups   []string  `json:"groups,omitempty"`
	Agents   []string  `json:"agents,omitempty"`
	Count    int       `json:"count"`
	Acted    int       `json:"acted,omitempty"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// SeenNode is a node.
type SeenNode struct {
	Name     string   `json:"name"`
	Conforms bool     `json:"conforms,omitempty"`
	Actors   []string `json:"actors,omitempty"`
	Requests int      `json:"requests"`
}

// SeenAt is the node behind an address of a user; empty if there were several.
type SeenAt struct {
	User   string `json:"user"`
	Source string `json:"source"`
	Node   string `json:"node,omitempty"`
}

// SeenActor counts the requests of a user for a node.
type SeenActor struct {
	User     string   `json:"user"`
	Standing Standing `json:"standing"`
	Node     string   `json:"node"`
	Count    int      `json:"count"`
}

// export returns the form of the sums in a partial report, sorted.
func (s *sums) export() Sums {
	out := Sums{
		First: s.first, Last: s.last, Answered: s.answered,
		Would: s.would.export(), Refused: s.refused.export(), Undecided: s.undecided.export(), Seen: s.ids.export(),
		NotExamined: s.notExamined(),
	}
	if s.totals != (Totals{}) {
		out.Totals = &s.totals
	}
	return out
}

func (t *tally) export() *Tally {
	if t.total == 0 {
		return nil
	}
	out := &Tally{Total: t.total, Caveats: t.caveats, Entries: make([]Listed, 0, len(t.entries.kept)), Beyond: t.rest.beyond}
	for _, l := range t.entries.kept {
		out.Entries = append(out.Entries, *l)
	}
	slices.SortFunc(out.Entries, func(a, b Listed) int { return compareRefusals(a.Refusal, b.Refusal) })
	for k, n := range t.rest.kinds.kept {
		out.Rest = append(out.Rest, Rest{k.place, Remainder{
			Node: k.place.Node, Group: k.group, Resource: k.resource, Subresource: k.sub, Code: k.code, Count: *n,
		}})
	}
	slices.SortFunc(out.Rest, func(a, b Rest) int { return compareRemainders(a.Kind, b.Kind) })
	return out
}

func (ids *identities) export() *Seen {
	out := &Seen{Requests: ids.requests, Shown: ids.shown}
	for key, id := range ids.all.kept {
		out.Identities = append(out.Identities, SeenUser{
			User: key.user, Standing: key.standing, Groups: id.groups, Agents: id.agents, Count: id.count, Acted: id.acted,
			First: id.first, Last: id.last,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(ids.nodes.kept)) {
		n := ids.nodes.kept[name]
		out.Nodes = append(out.Nodes, SeenNode{Name: name, Conforms: n.conforms, Actors: n.actors, Requests: n.requests})
	}
	for at, b := range ids.at.kept {
		out.Addresses = append(out.Addresses, SeenAt{at.user, at.source, b.node})
	}
	for k, n := range ids.pairs.kept {
		out.Pairs = append(out.Pairs, SeenActor{k.identity.user, k.identity.standing, k.node, *n})
	}
	slices.SortFunc(out.Identities, func(a, b SeenUser) int {
		return strings.Compare(a.User+"\n"+string(a.Standing), b.User+"\n"+string(b.Standing))
	})
	slices.SortFunc(out.Addresses, func(a, b SeenAt) int { return strings.Compare(a.User+"\n"+a.Source, b.User+"\n"+b.Source) })
	slices.SortFunc(out.Pairs, func(a, b SeenActor) int {
		return strings.Compare(a.User+"\n"+a.Node+"\n"+string(a.Standing), b.User+"\n"+b.Node+"\n"+string(b.Standing))
	})
	return out
}

// merge adds the sums of another part of the log.
func (s *sums) merge(other Sums) {
	s.saw(other.First, other.Last, other.Answered)
	if other.Totals != nil {
		s.totals.add(other.Totals, 1)
	}
	s.would.merge(other.Would)
	s.refused.merge(other.Refused)
	s.undecided.merge(other.Undecided)
	for _, kind := range other.NotExamined {
		n := kind.Count
		kind.Count = 0
		s.unexamined[kind] += n
	}
	s.ids.merge(other.Seen)
}

// add adds the counts of other, n times.
func (t *Totals) add(other *Totals, n int) {
	for _, sum := range []struct {
		to  *int
		one int
	}{
		{&t.Files, other.Files},
		{&t.Lines, other.Lines},
		{&t.Events, other.Events},
		{&t.BrokenLines, other.BrokenLines},
		{&t.UnfinishedLines, other.UnfinishedLines},
		{&t.Requests, other.Requests},
		{&t.Conforming, other.Conforming},
		{&t.Bootstrapping, other.Bootstrapping},
		{&t.Nonconforming, other.Nonconforming},
		{&t.Impersonated, other.Impersonated},
		{&t.Unauthenticated, other.Unauthenticated},
		{&t.Allowed, other.Allowed},
		{&t.Refused, other.Refused},
		{&t.Unanswered, other.Unanswered},
		{&t.MaybeTwice, other.MaybeTwice},
		{&t.Writes, other.Writes},
		{&t.NotExamined, other.NotExamined},
	} {
		*sum.to += n * sum.one
	}
}

func (t *tally) merge(other *Tally) {
	if other == nil {
		return
	}
	for i := range other.Entries {
		t.add(&other.Entries[i])
	}
	for _, r := range other.Rest {
		k := r.Kind
		t.rest.add(remainderKey{place: r.Place, group: k.Group, resource: k.Resource, sub: k.Subresource, code: k.Code}, k.Count)
	}
	for code, n := range other.Beyond {
		t.rest.beyond[code] += n
	}
	t.total, t.caveats = t.total+other.Total-other.listed(), t.caveats+other.Caveats-other.listedCaveats()
}

// listed is how many requests the entries have; tally.add counts them.
func (t *Tally) listed() (n int) {
	for i := range t.Entries {
		n += t.Entries[i].Refusal.Count
	}
	return n
}

func (t *Tally) listedCaveats() (n int) {
	for i := range t.Entries {
		if t.Entries[i].Refusal.Caveat != "" {
			n += t.Entries[i].Refusal.Count
		}
	}
	return n
}

func (ids *identities) merge(other *Seen) {
	if other == nil {
		return
	}
	ids.requests += other.Requests
	ids.shown += other.Shown
	for _, u := range other.Identities {
		if id := ids.all.get(identityKey{u.User, u.Standing}); id != nil {
			id.add(identity{groups: u.Groups, agents: u.Agents, count: u.Count, first: u.First, last: u.Last, acted: u.Acted})
		}
	}
	for _, n := range other.Nodes {
		if known := ids.nodes.get(n.Name); known != nil {
			known.requests += n.Requests
			known.conforms = known.conforms || n.Conforms
			for _, actor := range n.Actors {
				known.actors = bounded(known.actors, actor, maxActors)
			}
		}
	}
	for _, a := range other.Addresses {
		if b := ids.at.get(address{a.User, a.Source}); b != nil {
			b.add(behind{a.Node, true})
		}
	}
	for _, p := range other.Pairs {
		if n := ids.pairs.get(pairKey{identityKey{p.User, p.Standing}, p.Node}); n != nil {
			*n += p.Count
		}
	}
}

// scaled returns the sums of n equal requests from those of one.
func (s Sums) scaled(n int, first, last time.Time) Sums {
	if s.Totals != nil {
		t := new(Totals)
		t.add(s.Totals, n)
		s.Totals = t
	}
	s.Would, s.Refused, s.Undecided = s.Would.scaled(n, first, last), s.Refused.scaled(n, first, last), s.Undecided.scaled(n, first, last)
	s.NotExamined = slices.Clone(s.NotExamined)
	for i := range s.NotExamined {
		s.NotExamined[i].Count *= n
	}
	if s.Seen != nil {
		s.Seen = s.Seen.scaled(n, first, last)
	}
	return s
}

func (t *Tally) scaled(n int, first, last time.Time) *Tally {
	if t == nil {
		return nil
	}
	out := &Tally{Total: t.Total * n, Caveats: t.Caveats * n, Entries: slices.Clone(t.Entries)}
	for i := range out.Entries {
		l := &out.Entries[i]
		l.Refusal.Count, l.Refusal.First, l.Refusal.Last, l.Sampled = n, first, last, first
	}
	return out
}

func (s *Seen) scaled(n int, first, last time.Time) *Seen {
	out := &Seen{
		Requests: s.Requests * n, Shown: s.Shown * n, Addresses: s.Addresses,
		Identities: slices.Clone(s.Identities), Nodes: slices.Clone(s.Nodes), Pairs: slices.Clone(s.Pairs),
	}
	for i := range out.Identities {
		id := &out.Identities[i]
		id.Count, id.Acted, id.First, id.Last = id.Count*n, id.Acted*n, first, last
	}
	for i := range out.Nodes {
		out.Nodes[i].Requests *= n
	}
	for i := range out.Pairs {
		out.Pairs[i].Count *= n
	}
	return out
}
