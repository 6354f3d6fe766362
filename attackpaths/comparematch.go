package attackpaths

import (
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/internal/search"
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
	affected *search.Solver
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
	alike := func(e, f edge) bool { return s.other[e.To] == f.To && (e.DependsOn == 0) == (f.DependsOn == 0) }
	alikeJoins := func(i, k int32) bool {
		j, l := &s.edges.Joins[i], &o.edges.Joins[k]
		return alike(j.Edge, l.Edge) && slices.EqualFunc(j.From, l.From, func(v, u vertex) bool { return s.other[v] == u })
	}
	s.differ, o.differ = map[vertex]bool{}, map[vertex]bool{}
	for v, u := range s.other {
		if u == none {
			continue
		}
		sameOut := slices.EqualFunc(s.edges.Out[v], o.edges.Out[u], alike)
		if !sameOut || !slices.EqualFunc(s.edges.JoinsOf[v], o.edges.JoinsOf[u], alikeJoins) {
			s.differ[vertex(v)], o.differ[u] = true, true
		}
	}
	c.affected = s.edges.Reversed(true, func(j *join) []vertex { return j.From[:1] }).Solver(true)
	c.affected.Solve(slices.Collect(maps.Keys(s.differ))...)
}

// start is what is compared: a node, a service account, or an object that pods are made from.
type start struct {
	holding Holding
	// before and after are its vertices in each graph, none if it is not there. A workload has the vertices of its pods.
	before, after []vertex
	// self are the ids of the start itself: a node's credential too, and the pods of a workload.
	self []int32
}

// firstOf is the vertex of a node or service account; none where it is not.
func firstOf(vertices []vertex) vertex {
	if len(vertices) == 0 {
		return none
	}
	return vertices[0]
}

// isWorkload reports whether a start is an object that pods are made from.
func isWorkload(start Holding) bool { return start.Kind != Node && start.Kind != ServiceAccount }

func sortedStarts(all map[Holding]*start) []*start {
	return slices.SortedFunc(maps.Values(all), compareStarts)
}

func compareStarts(a, b *start) int { return a.holding.Compare(b.holding) }

// starts are the nodes and service accounts of both graphs, sorted.
func (c *comparer) starts() []*start {
	all := map[Holding]*start{}
	of := func(id int32) *start {
		h := c.holdings[id]
		if all[h] == nil {
			all[h] = &start{holding: h, self: []int32{id}}
			if credential := c.credentialOf[id]; credential >= 0 {
				all[h].self = append(all[h].self, credential)
			}
		}
		return all[h]
	}
	for _, v := range c.before.starts {
		s := of(c.before.ids[v])
		s.before = append(s.before, v)
	}
	for _, v := range c.after.starts {
		s := of(c.after.ids[v])
		s.after = append(s.after, v)
	}
	return sortedStarts(all)
}

// workloads are those that have a pod unlike all that they had before.
func (c *comparer) workloads() []*start {
	all := map[Holding]*start{}
	for i, p := range c.after.pods {
		if mayRun(p) {
			of, v := usedPod(p), c.after.firstPod+vertex(i)
			if all[of] == nil {
				all[of] = &start{holding: of}
			}
			all[of].after, all[of].self = append(all[of].after, v), append(all[of].self, c.after.ids[v])
		}
	}
	for i, p := range c.before.pods {
		if w := all[usedPod(p)]; w != nil && mayRun(p) {
			w.before = append(w.before, c.before.firstPod+vertex(i))
		}
	}
	maps.DeleteFunc(all, func(_ Holding, w *start) bool {
		return !slices.ContainsFunc(w.after, func(v vertex) bool {
			p := c.after.podOf(v)
			alike := func(u vertex) bool {
				q := c.before.podOf(u)
				return q.Template == p.Template || q.Like(p)
			}
			u := c.after.other[v] // most pods are as they were
			return !(slices.Contains(w.before, u) && alike(u)) && !slices.ContainsFunc(w.before, alike)
		})
	})
	return sortedStarts(all)
}

func (g *Graph) podOf(v vertex) *inventory.Pod { return g.pods[v-g.firstPod] }

// startGroup is starts that have most of their edges in common, in each graph. Before and after are their vertices, unless
// the starts have nothing in common.
type startGroup struct {
	starts        []*start
	before, after []vertex
}

// smallGroup is how many starts a group needs, so that a search for what they have in common pays.
const smallGroup = 16

// groups puts the starts together for which something may change. Starts of small groups, and workloads, have nothing in
// common.
func (c *comparer) groups(starts []*start) []startGroup {
	byKind := map[string][]*start{}
	for _, s := range starts {
		if len(s.before) == 0 || len(s.after) == 0 || c.affected.Has(s.after[0]) {
			byKind[s.holding.Kind] = append(byKind[s.holding.Kind], s)
		}
	}
	var all []startGroup
	rest := startGroup{starts: c.workloads()}
	c.findBrought(rest.starts)
	for _, kind := range [...]string{Node, ServiceAccount} {
		starts := byKind[kind]
		before, after, lists := make([]vertex, len(starts)), make([]vertex, len(starts)), make([][]vertex, len(starts))
		for i, s := range starts {
			before[i], after[i] = firstOf(s.before), firstOf(s.after)
		}
		b, a := c.before.commonOf(before), c.after.commonOf(after)
		for i := range starts {
			lists[i] = slices.Concat([]vertex{min(before[i], 0), min(after[i], 0)}, b[i], []vertex{none}, a[i])
		}
		for _, places := range equalLists(lists) {
			var x startGroup
			for _, i := range places {
				s := starts[i]
				x.starts, x.before, x.after = append(x.starts, s), append(x.before, s.before...), append(x.after, s.after...)
			}
			if len(places) < smallGroup {
				rest.starts = append(rest.starts, x.starts...)
			} else {
				all = append(all, x)
			}
		}
	}
	slices.SortFunc(rest.starts, compareStarts)
	if len(rest.starts) > 0 {
		all = append(all, rest)
	}
	return all
}

// brought is a service account, or a new secret, that new and changed workloads name.
type brought struct {
	// otherwise are the ways to it without a pod of these workloads. A way needs all its vertices.
	otherwise [][]vertex
}

// findBrought finds what new and changed workloads name.
func (c *comparer) findBrought(workloads []*start) {
	c.brought = make([]*brought, len(c.holdings))
	pods := map[vertex]bool{}
	add := func(h Holding) {
		if id, known := c.idOf[h]; known && c.brought[id] == nil && (h.Kind == ServiceAccount || !c.existed(id)) {
			c.brought[id] = &brought{}
			c.broughtIDs = append(c.broughtIDs, id)
		}
	}
	for _, w := range workloads {
		for _, v := range w.after {
			p := c.after.podOf(v)
			pods[v] = true
			add(Holding{Kind: ServiceAccount, Namespace: p.Namespace, Name: p.ServiceAccount})
			for _, name := range slices.Concat(p.Secrets, p.PullSecrets) {
				add(Holding{Kind: Secret, Namespace: p.Namespace, Name: name})
			}
		}
	}
	if len(c.broughtIDs) > 0 {
		c.findOtherWays(pods)
	}
}

// findOtherWays finds how what workloads name is reached without their pods.
func (c *comparer) findOtherWays(pods map[vertex]bool) {
	of := func(v vertex) *brought {
		if id := c.after.ids[v]; id >= 0 {
			return c.brought[id]
		}
		return nil
	}
	for v := range c.after.edges.Out {
		from := of(vertex(v))
		for _, e := range c.after.edges.Out[v] {
			b := of(e.To)
			if b == nil || b == from {
				continue
			}
			ofPod := e.Row != 0 && isOfPod(e.Row) && e.Arg >= 0 && pods[c.after.firstPod+vertex(e.Arg)]
			if !ofPod && e.Row != rowOf(SecretOnNode) { // a new secret is on a node because of a pod that names it
				b.otherwise = append(b.otherwise, []vertex{vertex(v)})
			}
		}
	}
	for i := range c.after.edges.Joins {
		j := &c.after.edges.Joins[i]
		if b := of(j.To); b != nil {
			b.otherwise = append(b.otherwise, j.From)
		}
	}
}

// isBrought reports whether only the pods of new and changed workloads bring a holding to a node or service account, and
// it gives nothing else that is new: no right, and no other holding.
func (s *groupSearch) isBrought(id int32, from *start, l levels) bool {
	b := s.brought[id]
	if b == nil || isWorkload(from.holding) || len(from.before) == 0 {
		return false
	}
	isOtherWay := func(all []vertex) bool {
		return !slices.ContainsFunc(all, func(v vertex) bool { return !s.after.possible.Has(v) })
	}
	had := s.before.possible
	if l.after == Certain {
		had = s.before.certain
	}
	isNew := func(v vertex) bool {
		u := s.comparer.after.other[v]
		return u == none || !had.Has(u)
	}
	return !slices.ContainsFunc(b.otherwise, isOtherWay) && !slices.ContainsFunc(s.givenBy(id), isNew)
}

// givenBy are the rights and other holdings that a brought holding leads to.
func (s *groupSearch) givenBy(id int32) []vertex {
	all, known := s.given[id]
	if !known {
		g := s.comparer.after.Graph
		f := g.solver(true)
		defer f.Release()
		f.Solve(s.comparer.after.vertices[id]...)
		for _, v := range f.Reached() {
			if s.counts(v, id) {
				all = append(all, v)
			}
		}
		s.given[id] = all
	}
	return all
}

// counts reports whether a vertex to which a holding leads is more than the holding: a right, one that is not followed, rights
// of an identity that count together, or another holding.
func (s *groupSearch) counts(v vertex, id int32) bool {
	side := &s.comparer.after
	switch kind := side.keys[v].kind; {
	case kind == isFact:
		return false // it leads to holdings, or comes from rights
	case kind == isSubject, kind == isRole:
		return len(side.openRightsOf([]vertex{v}).entries) > 0
	case side.ids[v] == id, kind == isScoped:
		return len(side.edges.JoinsOf[v]) > 0
	}
	return true
}
