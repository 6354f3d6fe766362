package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// identityKey identifies a nonconforming kubelet.
type identityKey struct {
	user     string
	standing Standing
}

func (k identityKey) rank() rank { return rankOf(k.user, string(k.standing)) }

// identity is what the log shows about a nonconforming kubelet.
type identity struct {
	groups      []string // of the first request
	agents      []string
	count       int
	first, last time.Time
	// acted is how many requests show the node for which they were made.
	acted int
}

// seen is what the log shows about a node.
type seen struct {
	conforms bool
	actors   []string
	// requests is how many requests show something about the node.
	requests int
}

// address is a user with the source address of its requests.
type address struct{ user, source string }

func (a address) rank() rank { return rankOf(a.user, a.source) }

// behind is the node behind an address; empty if there were several nodes.
type behind struct {
	node  string
	known bool
}

// pairKey is an identity and a node for which it acted.
type pairKey struct {
	identity identityKey
	node     string
}

func (k pairKey) rank() rank { return rankOf(k.identity.user, string(k.identity.standing), k.node) }

// identities collects the kubelets of a log and the nodes for which they act.
type identities struct {
	all   *smallest[identityKey, identity]
	nodes *smallest[string, seen]
	// at has the node behind each address of a user that names no node.
	at    *smallest[address, behind]
	pairs *smallest[pairKey, int]
	// requests are those of nonconforming kubelets; shown are those that show something
	// about a node.
	requests, shown int
}

func newIdentities() *identities {
	return &identities{
		all:   newSmallest[identityKey, identity](MaxIdentities, identityKey.rank, nil),
		nodes: newSmallest[string, seen](MaxNodes, func(name string) rank { return rankOf(name) }, nil),
		at:    newSmallest[address, behind](MaxNodes, address.rank, nil),
		pairs: newSmallest[pairKey, int](MaxNodes, pairKey.rank, nil),
	}
}

// add records who made a request, and returns where it comes from.
func (ids *identities) add(o *outcome) place {
	switch o.by.standing {
	case Conforming:
		// An impersonated request does not show that the node itself conforms.
		if !o.by.impersonated {
			if n := ids.node(o.by.node); n != nil {
				n.conforms = true
			}
		}
		return place{Node: o.by.node}
	case Bootstrapping:
		return place{}
	}
	d := o.detail
	key := identityKey{o.by.name, o.by.standing}
	ids.identity(key, o)
	if acted := cmp.Or(d.acted, o.by.node); acted != "" && !o.by.impersonated {
		ids.pair(key, acted)
	}
	switch {
	case o.by.node != "":
		return place{Node: o.by.node}
	case d.acted != "":
		ids.evidence(address{o.by.name, d.source}, d.acted)
		return place{Node: d.acted}
	}
	return place{User: o.by.name, Standing: o.by.standing, Source: d.source}
}

// node returns what is known about a node; nil beyond the bound.
func (ids *identities) node(name string) *seen {
	ids.shown++
	n := ids.nodes.find(name)
	if n == nil {
		n = ids.nodes.get(strings.Clone(name))
	}
	if n != nil {
		n.requests++
	}
	return n
}

func (ids *identities) identity(key identityKey, o *outcome) {
	ids.requests++
	if id := ids.all.get(key); id != nil {
		id.add(identity{groups: o.detail.asked.Groups, count: 1, first: o.at, last: o.at})
		id.agents = bounded(id.agents, o.detail.agent, maxAgents)
	}
}

// add adds the requests of another part of the log.
func (id *identity) add(other identity) {
	if id.count == 0 {
		id.groups, id.first, id.last = slices.Clone(other.groups), other.first, other.last
	}
	if c := other.first.Compare(id.first); c < 0 || c == 0 && slices.Compare(other.groups, id.groups) < 0 {
		id.first, id.groups = other.first, slices.Clone(other.groups)
	}
	id.last = later(id.last, other.last)
	id.count += other.count
	id.acted += other.acted
	for _, agent := range other.agents {
		id.agents = bounded(id.agents, agent, maxAgents)
	}
}

// evidence records a request that shows the node behind an address.
func (ids *identities) evidence(at address, node string) {
	if at.source == "" {
		return
	}
	if b := ids.at.get(at); b != nil {
		b.add(behind{node, true})
	}
}

func (b *behind) add(other behind) {
	if b.known && b.node != other.node {
		other.node = ""
	}
	b.node, b.known = other.node, true
}

// pair records that an identity acts for a node.
func (ids *identities) pair(key identityKey, name string) {
	if id := ids.all.find(key); id != nil {
		id.acted++
	}
	if n := ids.node(name); n != nil {
		n.actors = bounded(n.actors, key.user, maxActors)
	}
	if count := ids.pairs.get(pairKey{key, name}); count != nil {
		*count++
	}
}

// bounded adds a text to a sorted list. If the list is full, it keeps the first.
func bounded(list []string, text string, most int) []string {
	at, found := slices.BinarySearch(list, text)
	if found || text == "" || at == most {
		return list
	}
	list = slices.Insert(list, at, strings.Clone(text))
	return list[:min(len(list), most)]
}
