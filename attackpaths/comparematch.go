package attackpaths

import (
	"encoding/binary"
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
	// existed are the holdings of the first state, by id, and kin the holdings of each kind.
	existed []bool
	kin     map[kin][]int32
	// controllers are accounts of the control plane, and labels the rights to label nodes, in the first state.
	controllers map[inventory.Name]bool
	labels      []vertex
}

// side is one of the two graphs, and what the other does not have.
type side struct {
	*Graph
	// other are the vertices of the other graph; none if it has no such vertex.
	other []vertex
	// ids are the ids of holdings; -1 for other vertices and for what does not count.
	ids []int32
	// newEdges are where edges lead that the other graph does not have, or only if something else allows them, and
	// newJoins such joins.
	newEdges map[vertex][]vertex
	newJoins map[int32]bool
	// affected are the vertices that lead to what is new.
	affected []bool
}

// A vertex of one graph corresponds to one of the other if both have the same key. What is reached
// from a start can only grow if it leads to a vertex with an edge or join that the other graph does
// not have. So the starts that lead to none need no search.

func newComparer(before, after *Graph, o CompareOptions) *comparer {
	c := &comparer{before: side{Graph: before}, after: side{Graph: after}, options: o}
	c.match()
	c.number()
	c.findKin()
	c.findControlPlane()
	c.before.findNew(&c.after)
	c.after.findNew(&c.before)
	return c
}

// match finds the vertices that both graphs have.
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
		s.ids = make([]int32, len(s.keys))
		for v, k := range s.keys {
			h, ok := k.holding()
			if !ok || k.kind == isPod && s.other[v] == none {
				s.ids[v] = -1
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

// findNew finds the edges and joins that the other graph does not have, and the vertices that lead to them, and
// perhaps some more. Who does not lead to one of the parts of a join does not get further through it.
func (s *side) findNew(o *side) {
	s.newEdges, s.newJoins = map[vertex][]vertex{}, s.joinsBeyond(o)
	for v := range s.out {
		if to := s.edgesBeyond(vertex(v), o); len(to) > 0 {
			s.newEdges[vertex(v)] = to
		}
	}
	if len(s.newEdges)+len(s.newJoins) == 0 {
		s.affected = make([]bool, len(s.keys))
		return
	}
	r := s.reverse(true, func(j *join) []vertex { return j.from[:1] })
	for v := range s.newEdges {
		r.mark(v)
	}
	for i := range s.newJoins {
		r.mark(s.joins[i].from[0])
	}
	s.affected = r.marked
}

// edgesBeyond are where the edges of a vertex lead that the other graph does not have.
func (s *side) edgesBeyond(v vertex, o *side) []vertex {
	var theirs []edge
	if u := s.other[v]; u != none {
		theirs = o.out[u]
	}
	if slices.EqualFunc(s.out[v], theirs, func(e, f edge) bool {
		return s.other[e.to] == f.to && (e.dependsOn == 0) == (f.dependsOn == 0)
	}) {
		return nil
	}
	certain := make(map[vertex]bool, len(theirs))
	for _, f := range theirs {
		certain[f.to] = certain[f.to] || f.dependsOn == 0
	}
	var all []vertex
	for _, e := range s.out[v] {
		if known, ok := certain[s.other[e.to]]; !ok || e.dependsOn == 0 && !known {
			all = append(all, e.to)
		}
	}
	return all
}

// joinsBeyond are the places of the joins that the other graph does not have.
func (s *side) joinsBeyond(o *side) map[int32]bool {
	certain := map[string]bool{}
	for i := range o.joins {
		j := &o.joins[i]
		id := joinID(j.from, j.to)
		certain[id] = certain[id] || j.dependsOn == 0
	}
	all := map[int32]bool{}
	for i := range s.joins {
		j := &s.joins[i]
		from := make([]vertex, len(j.from))
		for i, v := range j.from {
			from[i] = s.other[v]
		}
		if known, ok := certain[joinID(from, s.other[j.to])]; !ok || j.dependsOn == 0 && !known {
			all[int32(i)] = true
		}
	}
	return all
}

// joinID is the same for joins with the same ends. The other graph has none with a vertex that it lacks.
func joinID(from []vertex, to vertex) string {
	id := binary.AppendVarint(nil, int64(to))
	for _, v := range slices.Sorted(slices.Values(from)) {
		id = binary.AppendVarint(id, int64(v))
	}
	return string(id)
}
