package attackpaths

import (
	"encoding/binary"
	"slices"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// A vertex of one graph corresponds to one of the other if both have the same key. What is reached
// from a start can only grow if it leads to a vertex with an edge or join that the other graph does
// not have. So the starts that lead to none need no search.

func newComparer(before, after *Graph, o CompareOptions) *comparer {
	c := &comparer{before: side{Graph: before}, after: side{Graph: after, isAfter: true}, options: o}
	c.match()
	c.number()
	c.findKin()
	c.findControlPlane()
	c.before.findChanged(&c.after)
	c.after.findChanged(&c.before)
	c.before.findAffected()
	c.after.findAffected()
	return c
}

// match finds the vertices that both graphs have.
func (c *comparer) match() {
	b, a := &c.before, &c.after
	b.other, a.other = unmatched(len(b.keys)), unmatched(len(a.keys))
	roles := map[rbac.Ref]int32{}
	for i := range a.roles {
		roles[a.roles[i].Role] = int32(i)
	}
	// Most vertices have the same distance from those that they correspond to.
	distance := 0
	for u := range b.keys {
		k, ok := b.keys[u], true
		switch k.kind {
		case isRole:
			k.role, ok = roles[b.roles[k.role].Role]
		case isLimited, isAssociated, isRight:
			if k.kind != isRight || k.role != 0 {
				k.role = int32(b.other[k.role])
				ok = k.role != int32(none)
			}
		}
		if !ok {
			continue
		}
		w := vertex(u + distance)
		if int(w) < 0 || int(w) >= len(a.keys) || a.keys[w] != k {
			if w, ok = a.index[k]; !ok {
				continue
			}
			distance = int(w) - u
		}
		b.other[u], a.other[w] = w, vertex(u)
	}
}

func unmatched(n int) []vertex {
	all := make([]vertex, n)
	for i := range all {
		all[i] = none
	}
	return all
}

// number gives holdings their ids. Several vertices may be of one holding.
func (c *comparer) number() {
	a, b := &c.after, &c.before
	rest := map[key]int32{}
	add := func(k key) int32 {
		h, _ := k.holding()
		c.holdings = append(c.holdings, h)
		return int32(len(c.holdings) - 1)
	}
	a.ids, b.ids = make([]int32, len(a.keys)), make([]int32, len(b.keys))
	for w, k := range a.keys {
		a.ids[w] = -1
		if k.isOneHolding() && (k.kind != isPod || a.other[w] != none) {
			a.ids[w] = add(k)
		}
	}
	for u, k := range b.keys {
		b.ids[u] = -1
		switch w := b.other[u]; {
		case !k.isOneHolding():
		case w != none:
			b.ids[u] = a.ids[w]
		case k.kind != isPod:
			b.ids[u] = add(k)
		}
	}
	for _, s := range [...]*side{a, b} {
		for v, k := range s.keys {
			if _, ok := k.holding(); !ok || k.isOneHolding() {
				continue
			}
			k = key{kind: k.rank(), namespace: k.namespace, name: k.name}
			if w, ok := a.index[k]; ok {
				s.ids[v] = a.ids[w]
			} else if u, ok := b.index[k]; ok {
				s.ids[v] = b.ids[u]
			} else if id, ok := rest[k]; ok {
				s.ids[v] = id
			} else {
				rest[k] = add(k)
				s.ids[v] = rest[k]
			}
		}
	}
	c.admin = a.ids[a.index[key{kind: isClusterAdmin}]]
	c.numberCredentials()
}

// isOneHolding reports whether a holding has this vertex in each graph that has others of it.
func (k key) isOneHolding() bool {
	_, ok := k.holding()
	return ok && k.kind == k.rank() && k.variant == 0
}

// numberCredentials notes of which nodes users are the credentials.
func (c *comparer) numberCredentials() {
	c.nodeOf, c.credentialOf = make([]int32, len(c.holdings)), make([]int32, len(c.holdings))
	nodes := map[string]int32{}
	for id, h := range c.holdings {
		c.nodeOf[id], c.credentialOf[id] = -1, -1
		if h.Kind == Node {
			nodes[nodeidentity.UserPrefix+h.Name] = int32(id)
		}
	}
	for id, h := range c.holdings {
		if node, ok := nodes[h.Name]; ok && h.Kind == User {
			c.nodeOf[id], c.credentialOf[node] = node, int32(id)
		}
	}
}

// idOf is the id of a start.
func (c *comparer) idOf(s start) int32 {
	if s.after != none {
		return c.after.ids[s.after]
	}
	return c.before.ids[s.before]
}

// findChanged finds the edges and joins that the other graph does not have.
func (s *side) findChanged(o *side) {
	e := newEdgeSet(len(o.keys))
	for v := range s.out {
		if !s.sameEdges(vertex(v), o) && len(s.newEdges(vertex(v), o, e)) > 0 {
			s.changed = append(s.changed, vertex(v))
		}
	}
	s.findNewJoins(o)
}

// sameEdges reports whether the edges of a vertex and of the one that it corresponds to are alike,
// in their order.
func (s *side) sameEdges(v vertex, o *side) bool {
	u := s.other[v]
	if u == none || len(s.out[v]) != len(o.out[u]) {
		return false
	}
	for i, e := range s.out[v] {
		f := o.out[u][i]
		if s.other[e.to] != f.to || (e.dependsOn == 0) != (f.dependsOn == 0) {
			return false
		}
	}
	return true
}

// newEdges are the edges of a vertex that the other graph does not have, or only if something else
// allows them.
func (s *side) newEdges(v vertex, o *side, set *edgeSet) []edge {
	set.begin()
	if u := s.other[v]; u != none {
		for _, e := range o.out[u] {
			set.add(e)
		}
	}
	var all []edge
	for _, e := range s.out[v] {
		if to := s.other[e.to]; to == none || !set.has(to, e.dependsOn == 0) {
			all = append(all, e)
		}
	}
	return all
}

// edgeSet is where edges of one vertex lead to. It is used again for one vertex after the other.
type edgeSet struct {
	round             int32
	certain, possible []int32
}

func newEdgeSet(vertices int) *edgeSet {
	return &edgeSet{certain: make([]int32, vertices), possible: make([]int32, vertices)}
}

func (s *edgeSet) begin() { s.round++ }

func (s *edgeSet) add(e edge) {
	s.possible[e.to] = s.round
	if e.dependsOn == 0 {
		s.certain[e.to] = s.round
	}
}

func (s *edgeSet) has(to vertex, certain bool) bool {
	if certain {
		return s.certain[to] == s.round
	}
	return s.possible[to] == s.round
}

// findNewJoins finds the joins that the other graph does not have.
func (s *side) findNewJoins(o *side) {
	s.newJoins = map[int32]bool{}
	if s.sameJoins(o) {
		return
	}
	known := map[string]bool{}
	for i := range o.joins {
		j := &o.joins[i]
		known[joinID(j.from, j.to, false)] = true
		if j.dependsOn == 0 {
			known[joinID(j.from, j.to, true)] = true
		}
	}
	for i := range s.joins {
		j := &s.joins[i]
		from := make([]vertex, len(j.from))
		for i, v := range j.from {
			from[i] = s.other[v]
		}
		to := s.other[j.to]
		if to == none || slices.Contains(from, none) || !known[joinID(from, to, j.dependsOn == 0)] {
			s.newJoins[int32(i)] = true
			// Who does not lead to one of its parts does not get further through it.
			s.changed = append(s.changed, j.from[0])
		}
	}
}

func (s *side) sameJoins(o *side) bool {
	if len(s.joins) != len(o.joins) {
		return false
	}
	for i := range s.joins {
		j, k := &s.joins[i], &o.joins[i]
		same := func(v, u vertex) bool { return s.other[v] == u }
		if s.other[j.to] != k.to || (j.dependsOn == 0) != (k.dependsOn == 0) || !slices.EqualFunc(j.from, k.from, same) {
			return false
		}
	}
	return true
}

func joinID(from []vertex, to vertex, certain bool) string {
	from = slices.Sorted(slices.Values(from))
	id := binary.AppendVarint(nil, int64(to))
	if certain {
		id = append(id, 1)
	}
	for _, v := range from {
		id = binary.AppendVarint(id, int64(v))
	}
	return string(id)
}

// findAffected finds the vertices that lead to what changed, and perhaps some more. Who does not lead to one
// of the parts of a join does not get further through it.
func (s *side) findAffected() {
	if len(s.changed) == 0 {
		s.affected = make([]bool, len(s.keys))
		return
	}
	r := s.reverse(true, func(j *join) []vertex { return j.from[:1] })
	for _, v := range s.changed {
		r.mark(v)
	}
	s.affected = r.marked
}
