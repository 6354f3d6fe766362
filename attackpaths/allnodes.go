package attackpaths

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// Count is how many holdings of a kind are reached.
type Count struct {
	// Kind is the kind of the holdings. Certain is how many are certainly reached, and Possible how
	// many only possibly.
	Kind     string `json:"kind"`
	Certain  int    `json:"certain"`
	Possible int    `json:"possible"`
}

// Class is nodes that reach the same, but for themselves and the pods on them.
type Class struct {
	// Nodes are sorted by name.
	Nodes []string `json:"nodes"`
	// ClusterAdmin says whether the nodes lead to the whole cluster.
	ClusterAdmin Certainty `json:"clusterAdmin"`
	// ControlPlane is true for nodes that run the control plane. They are not in a class with
	// others.
	ControlPlane bool `json:"controlPlane,omitempty"`
	// Target says whether the nodes reach the target, if paths to another than cluster-admin were asked for.
	Target *Certainty `json:"target,omitempty"`
	// Path leads from the first of the nodes to the target, or else to cluster-admin; empty if none does.
	Path []Step `json:"path,omitempty"`
	// Counts count what is reached without cluster-admin, in the order of the kinds. They
	// are left out where cluster-admin is certain: it owns everything.
	Counts []Count `json:"counts,omitempty"`
	// NotFollowed are the rights that the nodes of the class come to have which may give more than paths follow; see
	// Result.
	NotFollowed []NotFollowed `json:"notFollowed,omitempty"`
}

// AllNodes computes what each node reaches, and puts nodes together that reach the same: those
// that reach cluster-admin come first, then those with the most nodes.
func (g *Graph) AllNodes() []Class {
	return g.classes([]vertex{g.index[key{kind: isClusterAdmin}]}, false)
}

// AllNodesTo puts nodes together by whether they reach a target, which must be in the graph. Each class has the
// path of its first node. The target itself is in no class.
func (g *Graph) AllNodesTo(target Holding) ([]Class, error) {
	ends, err := g.ends(target)
	if err != nil {
		return nil, err
	}
	return g.classes(ends, true), nil
}

// inParallel calls a function for so many places, on several processors.
func inParallel(n int, do func(int)) {
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		all.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = all.Wait() // no function fails
}

// groups puts starts together that have most of their edges in common: to what the scheduler may
// move to nodes, and to the accounts of DaemonSets.
func (g *Graph) groups(starts []vertex) [][]vertex {
	var all [][]vertex
	for _, places := range equalLists(g.commonOf(starts)) {
		var group []vertex
		for _, i := range places {
			group = append(group, starts[i])
		}
		all = append(all, group)
	}
	return all
}

// commonOf finds for each start the popular vertices to which edges lead from it: the successors of half of the starts, and
// what the scheduler may move to nodes. A start may be none.
func (g *Graph) commonOf(starts []vertex) [][]vertex {
	count, known := map[vertex]int{}, 0
	common := make([][]vertex, len(starts))
	for i, v := range starts {
		if v == none {
			continue
		}
		known++
		common[i] = g.successors(v, true)
		for _, to := range common[i] {
			count[to]++
		}
	}
	for i, v := range starts {
		common[i] = slices.DeleteFunc(common[i], func(to vertex) bool {
			popular := count[to]*2 >= known || g.keys[v].kind == isNode && g.keys[to].kind == isFact
			return count[to] < 2 || !popular
		})
	}
	return common
}

// equalLists puts the places of equal lists together, in the order of the first ones.
func equalLists(lists [][]vertex) [][]int {
	index := map[string]int{}
	var all [][]int
	for i, list := range lists {
		id, _ := binary.Append(nil, binary.NativeEndian, list)
		at, ok := index[string(id)]
		if !ok {
			at = len(all)
			index[string(id)] = at
			all = append(all, nil)
		}
		all[at] = append(all[at], i)
	}
	return all
}

// successors are the vertices to which edges lead from a node and its credential, sorted, each
// once.
func (g *Graph) successors(node vertex, possible bool) []vertex {
	var all []vertex
	add := func(from vertex) {
		for _, e := range g.edges.Out[from] {
			if possible || e.DependsOn == 0 {
				all = append(all, e.To)
			}
		}
	}
	add(node)
	for _, to := range slices.Clone(all) {
		if g.keys[to].kind == isNodeUser {
			add(to)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// successorsOfAll are the vertices to which edges lead from each of some starts.
func (g *Graph) successorsOfAll(starts []vertex, possible bool) []vertex {
	count := map[vertex]int{}
	for _, v := range starts {
		for _, to := range g.successors(v, possible) {
			count[to]++
		}
	}
	maps.DeleteFunc(count, func(_ vertex, n int) bool { return n < len(starts) })
	return slices.Sorted(maps.Keys(count))
}

// nodeReach is what one node reaches.
type nodeReach struct {
	admin, target Certainty
	controlPlane  bool
	// certain sums up what is reached certainly, and all what is reached at all, with the node itself.
	certain, all reachSum
	// open are rights that are not followed: of all nodes of a group, and what this one has besides.
	openOfGroup, open *openRights
}

// reachOfNodes computes what each node reaches, and whether that includes one of the ends. The last of them is
// cluster-admin.
func (g *Graph) reachOfNodes(nodes, ends []vertex) map[vertex]*nodeReach {
	found := make(map[vertex]*nodeReach, len(nodes))
	for _, v := range nodes {
		found[v] = &nodeReach{controlPlane: g.runsControlPlane(v)}
	}
	admin := ends[len(ends)-1]
	g.eachGroup(nodes, func(group []vertex, of reach) {
		certain, possible := g.sumBeyond(reachSum{}, of.certain), g.sumBeyond(reachSum{}, of.possible)
		openCertain, open := g.openRightsOf(of.certain.Reached()), g.openRightsOf(of.possible.Reached())
		for _, v := range group {
			r := found[v]
			if r.admin = of.until(v, admin); r.admin == Certain {
				r.target = Certain
				continue
			}
			for _, end := range ends {
				r.target = max(r.target, of.of(end))
			}
			r.certain = g.sumBeyond(certain, of.certain)
			if r.admin == Possible { // this search ended when cluster-admin was reached
				r.all, r.openOfGroup, r.open = r.certain, openCertain, g.openRightsOf(of.certain.Reached())
			} else {
				r.all, r.openOfGroup, r.open = g.sumBeyond(possible, of.possible), open, g.openRightsOf(of.possible.Reached())
			}
		}
	})
	return found
}

// counts counts what is reached but the node itself.
func (r *nodeReach) counts() []Count {
	var all []Count
	for kind, n := range r.all.counts {
		certain := r.certain.counts[kind]
		if vertexKind(kind) == isNode && n > 0 {
			n, certain = n-1, certain-1
		}
		if n > 0 {
			all = append(all, Count{Kind: holdingKinds[kind], Certain: certain, Possible: n - certain})
		}
	}
	return all
}

// reachSum sums up the vertices of a set that count.
type reachSum struct {
	hash   setHash
	counts [isPod]int
}

// sumBeyond adds what was reached last to a sum.
func (g *Graph) sumBeyond(sum reachSum, s *solver) reachSum {
	for _, v := range s.Reached() {
		if g.counts(v) {
			sum.hash.add(v, 1)
			sum.counts[g.keys[v].kind]++
		}
	}
	return sum
}

// compareBools puts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// runsControlPlane reports whether a component of the control plane on a node gives it the cluster.
func (g *Graph) runsControlPlane(node vertex) bool {
	return slices.ContainsFunc(g.edges.Out[node], func(e edge) bool {
		return e.Row != 0 && codeOf(e.Row) == ControlPlaneNode && e.DependsOn == 0 && g.keys[e.To].kind == isClusterAdmin
	})
}

// counts reports whether a vertex counts for what a node reaches. The credential of a node
// counts as a part of it, and a namespace or identity once, however pods are made in it or it is held.
func (g *Graph) counts(v vertex) bool {
	k := g.keys[v]
	credential := k.kind == isNodeUser || k.kind == isUser && strings.HasPrefix(k.name, nodeidentity.UserPrefix)
	repeated := k.kind == isNamespace && k.variant != 0 || k.kind == isAssociated || g.alsoImpersonated[v] ||
		k.kind == isServiceAccount && k.variant != scopedHolding && g.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}] != nil
	return int(k.kind) < len(holdingKinds) && k.kind != isPod && !credential && !repeated
}

// setHash is the same for sets of the same vertices.
type setHash [2]uint64

var setSeeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// add adds a vertex that is not in the set, or for -1 removes one that is.
func (h *setHash) add(v vertex, times int) {
	for i, seed := range setSeeds {
		h[i] += maphash.Comparable(seed, v) * uint64(times)
	}
}

// classID is the same for nodes of one class.
type classID struct {
	target, admin     Certainty
	controlPlane      bool
	withStart         [2]bool
	certain, possible setHash
}

// classes puts nodes together that reach the same, but for themselves: their sets are the same
// without themselves, or, where they reach each other, with themselves. If there is a target, only whether they reach
// one of the ends matters.
func (g *Graph) classes(ends []vertex, target bool) []Class {
	type class struct {
		Class
		*nodeReach
		first vertex
		// open are the rights that are not followed, of nodes and groups.
		open map[*openRights]bool
	}
	var nodes []vertex
	for v, k := range g.keys {
		if k.kind == isNode && !(target && vertex(v) == ends[0]) {
			nodes = append(nodes, vertex(v))
		}
	}
	reach, index := g.reachOfNodes(nodes, ends), map[classID]*class{}
	var all []*class
	for _, start := range nodes {
		r := reach[start]
		var c *class
		ids := r.classIDs(start, target)
		for _, id := range ids {
			if known := index[id]; known != nil {
				c = known
			}
		}
		if c == nil {
			c = &class{nodeReach: r, first: start, open: map[*openRights]bool{}}
			c.Class = Class{ClusterAdmin: r.admin, ControlPlane: r.controlPlane, Counts: r.counts()}
			if target {
				c.Target, c.Counts = &r.target, nil
			}
			all = append(all, c)
		}
		for _, id := range ids {
			index[id] = c
		}
		c.open[r.openOfGroup], c.open[r.open] = true, true
		c.Nodes = append(c.Nodes, g.keys[start].name)
	}
	slices.SortFunc(all, func(a, b *class) int {
		return cmp.Or(
			-cmp.Compare(a.target, b.target), -cmp.Compare(a.admin, b.admin), compareBools(a.controlPlane, b.controlPlane),
			-cmp.Compare(len(a.Nodes), len(b.Nodes)), strings.Compare(a.Nodes[0], b.Nodes[0]),
		)
	})
	classes := make([]Class, len(all))
	for i, c := range all {
		open := newOpenRights()
		for more := range c.open {
			open.merge(more)
		}
		c.NotFollowed = open.list(g)
		if c.target != No {
			s := g.solver(c.target == Possible)
			if target {
				s.Solve(c.first)
			} else {
				s.SolveUntil(c.first, ends[0])
			}
			c.Path = s.path(s.nearest(ends))
			s.Release()
		}
		classes[i] = c.Class
	}
	return classes
}

// classIDs are the same for the nodes of a class in one place: what is reached certainly and at all, each with and without the
// node itself.
func (r *nodeReach) classIDs(node vertex, target bool) []classID {
	if target {
		return []classID{{target: r.target, admin: r.admin, controlPlane: r.controlPlane}}
	}
	var ids []classID
	for _, withStart := range [...][2]bool{{}, {true, true}, {false, true}} {
		id := classID{No, r.admin, r.controlPlane, withStart, r.certain.hash, r.all.hash}
		if !withStart[0] {
			id.certain.add(node, -1)
		}
		if !withStart[1] {
			id.possible.add(node, -1)
		}
		ids = append(ids, id)
	}
	return ids
}
