package replay

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/source"
)

// identityKey identifies a nonconforming kubelet.
type identityKey struct {
	user     string
	standing Standing
}

type identity struct {
	Identity
	nodes map[string]struct{}
}

// seen is what the log shows about a node.
type seen struct {
	conforms bool
	actors   []string
}

// address is a user with the source address of its requests.
type address struct{ user, source string }

// identities collects the kubelets of a log and the nodes for which they act.
type identities struct {
	all   map[identityKey]*identity
	nodes map[string]*seen
	// at has the node behind each address of a user that names no node; empty if there
	// were several nodes.
	at map[address]string
	// pairs counts pairs of an identity and a node; notTold counts requests beyond the
	// bounds.
	pairs, notTold int
}

func newIdentities() *identities {
	return &identities{all: map[identityKey]*identity{}, nodes: map[string]*seen{}, at: map[address]string{}}
}

// add records who made a request, and returns the node for which it was made.
func (ids *identities) add(o *outcome) string {
	switch o.by.standing {
	case Conforming:
		// An impersonated request does not show that the node itself conforms.
		if !o.by.impersonated {
			if n := ids.node(o.by.node); n != nil {
				n.conforms = true
			}
		}
		return o.by.node
	case Bootstrapping:
		return ""
	}
	id := ids.identity(o)
	node := o.by.node
	if node == "" {
		node = ids.behind(o, id)
	}
	if acted := cmp.Or(o.detail.acted, o.by.node); id != nil && acted != "" && !o.by.impersonated {
		ids.pair(id, acted)
	}
	return node
}

func (ids *identities) node(name string) *seen {
	n := ids.nodes[name]
	if n == nil {
		if len(ids.nodes) >= MaxNodes {
			ids.notTold++
			return nil
		}
		n = new(seen)
		ids.nodes[strings.Clone(name)] = n
	}
	return n
}

func (ids *identities) identity(o *outcome) *identity {
	key := identityKey{o.by.name, o.by.standing}
	id := ids.all[key]
	if id == nil {
		if len(ids.all) >= MaxIdentities {
			ids.notTold++
			return nil
		}
		id = &identity{nodes: map[string]struct{}{}}
		id.Username, id.Standing, id.Why = o.by.name, o.by.standing, o.by.standing.Why()
		id.Groups, id.First, id.Last = slices.Clone(o.detail.asked.Groups), o.at, o.at
		ids.all[key] = id
	}
	id.Count++
	if o.at.Before(id.First) {
		id.First = o.at
	}
	if o.at.After(id.Last) {
		id.Last = o.at
	}
	if len(id.UserAgents) < maxAgents && o.detail.agent != "" && !slices.Contains(id.UserAgents, o.detail.agent) {
		id.UserAgents = append(id.UserAgents, o.detail.agent)
	}
	return id
}

// behind returns the node behind a user that names no node: the node of the request itself,
// or else the only node for which requests came from the same address, or else the only node
// of the user.
func (ids *identities) behind(o *outcome, id *identity) string {
	at := address{o.by.name, o.detail.source}
	known, found := ids.at[at]
	switch {
	case o.detail.acted != "":
		switch {
		case o.detail.source == "" || found && known == o.detail.acted:
		case found:
			ids.at[at] = ""
		case len(ids.at) < MaxNodes:
			ids.at[at] = o.detail.acted
		}
		return o.detail.acted
	case found:
		return known
	}
	if id != nil && len(id.nodes) == 1 && id.MoreNodes == 0 {
		for name := range id.nodes {
			return name
		}
	}
	return ""
}

// pair records that an identity acts for a node.
func (ids *identities) pair(id *identity, name string) {
	n := ids.node(name)
	if n == nil {
		return
	}
	if len(n.actors) < maxActors && !slices.Contains(n.actors, id.Username) {
		n.actors = append(n.actors, id.Username)
	}
	if _, known := id.nodes[name]; known {
		return
	}
	if ids.pairs >= MaxNodes {
		id.MoreNodes++
		return
	}
	ids.pairs++
	id.nodes[name] = struct{}{}
}

// list returns the nonconforming kubelets, the most frequent first; it is never nil.
func (ids *identities) list() []Identity {
	list := make([]Identity, 0, len(ids.all))
	for _, id := range ids.all {
		id.Nodes = slices.AppendSeq([]string{}, maps.Keys(id.nodes))
		slices.Sort(id.Nodes)
		slices.Sort(id.UserAgents)
		if id.UserAgents == nil {
			id.UserAgents = []string{}
		}
		if id.Groups == nil {
			id.Groups = []string{}
		}
		list = append(list, id.Identity)
	}
	slices.SortFunc(list, func(a, b Identity) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Username, b.Username), cmp.Compare(a.Standing, b.Standing))
	})
	return list
}

// summary compares the nodes of the log with those of the state.
func (ids *identities) summary(state *source.State) Nodes {
	n := Nodes{NeverConforming: []NeverConforming{}, Silent: []string{}, NotInState: []string{}, NotTold: ids.notTold}
	for _, name := range slices.Sorted(maps.Keys(ids.nodes)) {
		s := ids.nodes[name]
		inState := state.HasNode(name)
		if !inState {
			n.NotInState = append(n.NotInState, name)
		}
		switch {
		case s.conforms:
			n.Conforming++
		default:
			slices.Sort(s.actors)
			n.NeverConforming = append(n.NeverConforming, NeverConforming{Name: name, Identities: s.actors, InState: inState})
		}
	}
	for _, name := range state.NodeNames() {
		if ids.nodes[name] == nil {
			n.Silent = append(n.Silent, name)
		}
	}
	return n
}
