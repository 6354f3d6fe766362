package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

type identityKey struct {
	user     string
	standing Standing
}

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
}

// address is a user with the source address of its requests.
type address struct{ user, source string }

type pairKey struct {
	identity identityKey
	node     string
}

// identities collects the kubelets of a log and the nodes for which they act.
type identities struct {
	all   map[identityKey]*identity
	nodes map[string]*seen
	// at has the node behind each address of a user that names no node; empty if there were several nodes.
	at    map[address]string
	pairs map[pairKey]int
	// beyond are requests that show an identity or a node beyond the bounds, and moreNodes those that show such a node.
	beyond, moreNodes int
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
		return place{node: o.by.node}
	case Bootstrapping:
		return place{}
	}
	d := o.detail
	key := identityKey{o.by.name, o.by.standing}
	ids.addIdentity(key, identity{groups: d.asked.Groups, agents: []string{d.agent}, count: 1, first: o.at, last: o.at})
	if acted := cmp.Or(d.acted, o.by.node); acted != "" && !o.by.impersonated {
		if id := ids.all[key]; id != nil {
			id.acted++
		}
		if n := ids.node(acted); n != nil {
			n.actors = bounded(n.actors, key.user, maxActors)
		}
		ids.addPair(pairKey{key, acted}, 1)
	}
	switch {
	case o.by.node != "":
		return place{node: o.by.node}
	case d.acted != "":
		ids.evidence(address{o.by.name, d.source}, d.acted)
		return place{node: d.acted}
	}
	return place{user: o.by.name, standing: o.by.standing, source: d.source}
}

// node returns what is known about a node; nil beyond the bound.
func (ids *identities) node(name string) *seen {
	n := ids.nodes[name]
	switch {
	case n != nil:
	case len(ids.nodes) < MaxNodes:
		n = &seen{}
		ids.nodes[strings.Clone(name)] = n
	default:
		ids.beyond++
		ids.moreNodes++
	}
	return n
}
func (ids *identities) addIdentity(key identityKey, of identity) {
	id := ids.all[key]
	switch {
	case id != nil:
	case len(ids.all) < MaxIdentities:
		id = &identity{}
		ids.all[key] = id
	default:
		ids.beyond += of.count
		return
	}
	id.add(of)
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
	before, known := ids.at[at]
	switch {
	case at.source == "" || !known && len(ids.at) >= MaxNodes:
		return
	case known && before != node:
		node = ""
	}
	ids.at[at] = node
}
func (ids *identities) addPair(key pairKey, count int) {
	if _, known := ids.pairs[key]; known || len(ids.pairs) < MaxNodes {
		ids.pairs[key] += count
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
