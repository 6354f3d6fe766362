package attackpaths

import (
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// comparer compares two graphs. Everything that both have is numbered alike: holdings by an id.
type comparer struct {
	before, after side
	options       CompareOptions
	// holdings are by id, and idOf their ids.
	holdings []Holding
	idOf     map[Holding]int32
	admin    int32
	// nodeOf is the node of which a holding is the credential, and credentialOf the credential of a
	// node; -1 for others.
	nodeOf, credentialOf []int32
	// kin are the holdings of each kind in the first state.
	kin map[kin][]int32
	// controllers are accounts of the control plane, and labels the rights to label nodes, in the first state.
	controllers map[inventory.Name]bool
	labels      []vertex
	// affected is the search in the second graph for what leads to vertices that differ.
	affected *solver
	// brought are what new and changed workloads name, by id, nil for others, and broughtIDs are their ids.
	brought    []*brought
	broughtIDs []int32
}

// side is one of the two graphs.
type side struct {
	*Graph
	// other are the vertices of the other graph; none if it has no such vertex.
	other []vertex
	// ids are the ids of holdings; -1 for other vertices and for what does not count. Vertices are by id.
	ids      []int32
	vertices [][]vertex
	// differ are the vertices that both graphs have, with other edges or joins.
	differ map[vertex]bool
}

func newComparer(before, after *Graph, o CompareOptions) *comparer {
	c := &comparer{before: side{Graph: before}, after: side{Graph: after}, options: o}
	c.match()
	c.number()
	c.findKin()
	c.findControlPlane()
	c.findAffected()
	return c
}

// match finds the vertices that both graphs have: those with the same key.
func (c *comparer) match() {
	b, a := &c.before, &c.after
	b.other, a.other = slices.Repeat([]vertex{none}, len(b.keys)), slices.Repeat([]vertex{none}, len(a.keys))
	roles := map[rbac.Ref]int32{}
	for i := range a.roles {
		roles[a.roles[i].Role] = int32(i)
	}
	for u, k := range b.keys {
		w, ok := b.in(a.Graph, vertex(u))
		if k.kind == isRole {
			if k.role, ok = roles[b.roles[k.role].Role]; ok {
				w, ok = a.index[k]
			}
		}
		if ok {
			b.other[u], a.other[w] = w, vertex(u)
		}
	}
}

// number gives holdings their ids. Several vertices may be of one holding. Pods count if both graphs have them.
func (c *comparer) number() {
	c.idOf = map[Holding]int32{}
	for _, s := range [...]*side{&c.after, &c.before} {
		s.ids = slices.Repeat([]int32{-1}, len(s.keys))
		for v, k := range s.keys {
			h, ok := k.holding()
			if !ok || k.kind == isPod && s.other[v] == none {
				continue
			}
			id, known := c.idOf[h]
			if !known {
				id = int32(len(c.holdings))
				c.holdings, c.idOf[h] = append(c.holdings, h), id
			}
			s.ids[v] = id
		}
	}
	for _, s := range [...]*side{&c.after, &c.before} {
		s.vertices = make([][]vertex, len(c.holdings))
		for v, id := range s.ids {
			if id >= 0 {
				s.vertices[id] = append(s.vertices[id], vertex(v))
			}
		}
	}
	c.admin = c.idOf[Holding{Kind: ClusterAdmin}]
	c.nodeOf, c.credentialOf = slices.Repeat([]int32{-1}, len(c.holdings)), slices.Repeat([]int32{-1}, len(c.holdings))
	for id, h := range c.holdings {
		if name, ok := strings.CutPrefix(h.Name, nodeidentity.UserPrefix); ok && h.Kind == User {
			if node, ok := c.idOf[Holding{Kind: Node, Name: name}]; ok {
				c.nodeOf[id], c.credentialOf[node] = node, int32(id)
			}
		}
	}
}

// findAffected finds what leads to vertices whose edges and joins the graphs do not have alike, and perhaps some more. A
// start that both graphs have and that leads to none reaches the same in both. Who does not lead to one of the parts of a
// join does not get further through it.
func (c *comparer) findAffected() {
	s, o := &c.after, &c.before
	alike := func(e, f edge) bool { return s.other[e.to] == f.to && (e.dependsOn == 0) == (f.dependsOn == 0) }
	alikeJoins := func(i, k int32) bool {
		j, l := &s.joins[i], &o.joins[k]
		return alike(j.edge, l.edge) && slices.EqualFunc(j.from, l.from, func(v, u vertex) bool { return s.other[v] == u })
	}
	s.differ, o.differ = map[vertex]bool{}, map[vertex]bool{}
	for v, u := range s.other {
		if u != none && !(slices.EqualFunc(s.out[v], o.out[u], alike) && slices.EqualFunc(s.joinsOf[v], o.joinsOf[u], alikeJoins)) {
			s.differ[vertex(v)], o.differ[u] = true, true
		}
	}
	c.affected = s.reversed(true, func(j *join) []vertex { return j.from[:1] }).solver(true)
	c.affected.solve(slices.Collect(maps.Keys(s.differ))...)
}
