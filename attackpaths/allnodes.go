package attackpaths

import (
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/node-authorizer/node-authorizer/inventory"
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
	starts, found := searchGroups(g, g.groupReach)
	return g.classes(starts, found)
}

// searchGroups searches from the nodes of each group, several groups at once. It returns all nodes, sorted.
func searchGroups(g *Graph, search func(group) []nodeReach) ([]vertex, map[vertex]nodeReach) {
	found := map[vertex]nodeReach{}
	var starts []vertex
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan group)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for group := range next {
				reach := search(group)
				mu.Lock()
				for i, v := range group.nodes {
					found[v] = reach[i]
				}
				mu.Unlock()
			}
		})
	}
	for _, group := range g.groups() {
		starts = append(starts, group.nodes...)
		next <- group
	}
	close(next)
	wg.Wait()
	slices.Sort(starts)
	return starts, found
}

// group is nodes that have most of their edges in common.
type group struct {
	nodes []vertex
	// common are the vertices to which edges lead from each of them.
	common []vertex
}

// groups puts nodes together that have the same popular successors: what the scheduler may
// move to them, and the accounts of DaemonSets.
func (g *Graph) groups() []group {
	var nodes []vertex
	count := map[vertex]int{}
	for v, k := range g.keys {
		if k.kind == isNode {
			nodes = append(nodes, vertex(v))
			for _, to := range g.successors(vertex(v)) {
				count[to]++
			}
		}
	}
	index := map[string]int{}
	var all []group
	for _, v := range nodes {
		var common []vertex
		var id []byte
		for _, to := range g.successors(v) {
			if count[to] > 1 && (count[to]*2 >= len(nodes) || g.keys[to].kind == isFact) {
				common = append(common, to)
				id = binary.BigEndian.AppendUint32(id, uint32(to))
			}
		}
		at, ok := index[string(id)]
		if !ok {
			at = len(all)
			index[string(id)] = at
			all = append(all, group{common: common})
		}
		all[at].nodes = append(all[at].nodes, v)
	}
	return all
}

// successors are the vertices to which edges lead from a node and its credential, sorted, each
// once.
func (g *Graph) successors(node vertex) []vertex {
	var all []vertex
	for _, e := range g.out[node] {
		all = append(all, e.to)
		if g.keys[e.to].kind == isNodeUser {
			for _, e := range g.out[e.to] {
				all = append(all, e.to)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// signature is the same for nodes that reach the same.
type signature struct{ certain, possible setHash }

// nodeReach is what one node reaches.
type nodeReach struct {
	admin Certainty
	// target is set if a search has one.
	target       Certainty
	controlPlane bool
	// others is of what is reached but the node itself, and all with it.
	others, all signature
	counts      []Count
	// open are rights that are not followed: of all nodes of a group, and what this one has besides.
	openOfGroup, open *openRights
}

// groupReach computes what each node of a group reaches.
func (g *Graph) groupReach(nodes group) []nodeReach {
	certain, possible := g.solverBeyond(false, g.certainly(nodes)), g.solverBeyond(true, nodes.common)
	defer g.release(certain)
	defer g.release(possible)
	base := groupBase{
		certain: g.counts(none, certain, certain.base.vertices()), possible: g.counts(none, certain, possible.base.vertices()),
		certainlyOpen: g.openRightsOf(certain.base.vertices()), possiblyOpen: g.openRightsOf(possible.base.vertices()),
	}
	found := make([]nodeReach, len(nodes.nodes))
	for i, v := range nodes.nodes {
		found[i] = g.nodeReach(v, certain, possible, &base)
	}
	return found
}

// certainly are those of a group's common vertices to which a certain edge leads from each node.
func (g *Graph) certainly(nodes group) []vertex {
	count := map[vertex]int{}
	for _, v := range nodes.nodes {
		own := map[vertex]bool{}
		for _, e := range g.out[v] {
			if e.dependsOn == 0 {
				own[e.to] = true
				if g.keys[e.to].kind == isNodeUser {
					for _, e := range g.out[e.to] {
						if e.dependsOn == 0 {
							own[e.to] = true
						}
					}
				}
			}
		}
		for _, to := range nodes.common {
			if own[to] {
				count[to]++
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes.common), func(v vertex) bool { return count[v] < len(nodes.nodes) })
}

func (g *Graph) nodeReach(start vertex, certain, possible *solver, base *groupBase) nodeReach {
	admin := g.index[key{kind: isClusterAdmin}]
	certain.solveUntil(start, admin)
	if certain.has(admin) {
		return nodeReach{admin: Certain, controlPlane: g.runsControlPlane(start)}
	}
	possible.solveUntil(start, admin)
	r := nodeReach{admin: No, others: signature{certain: certain.hash(start)}, all: signature{certain: certain.hashWith(start)}}
	if possible.has(admin) {
		// The search ended when cluster-admin was reached.
		r.admin = Possible
		r.openOfGroup, r.open = base.certainlyOpen, g.openRightsOf(certain.reached)
		r.counts = listCounts(g.addCounts(base.certain, start, certain, certain, certain.reached))
		return r
	}
	r.openOfGroup, r.open = base.possiblyOpen, g.openRightsOf(possible.reached)
	r.others.possible, r.all.possible = possible.hash(start), possible.hashWith(start)
	counts := g.addCounts(base.possible, start, certain, possible, possible.reached)
	// What is possible in the base may be certain for this node.
	for _, v := range certain.reached {
		if possible.base.has[v] && !certain.base.has[v] && g.countsFor(v, start) {
			c := counts[holdingKinds[g.keys[v].kind]]
			c.Certain, c.Possible = c.Certain+1, c.Possible-1
			counts[c.Kind] = c
		}
	}
	r.counts = listCounts(counts)
	return r
}

// groupBase is of what the nodes of a group reach in common.
type groupBase struct {
	certain, possible           map[string]Count
	certainlyOpen, possiblyOpen *openRights
}

// addCounts adds what a node reaches beyond the base. What is certain is counted so.
func (g *Graph) addCounts(base map[string]Count, start vertex, certain, all *solver, of []vertex) map[string]Count {
	counts := maps.Clone(base)
	for kind, c := range g.counts(start, certain, of) {
		c.Certain, c.Possible = c.Certain+counts[kind].Certain, c.Possible+counts[kind].Possible
		counts[kind] = c
	}
	// The base counts the node itself where the nodes of a group reach it.
	if c := counts[Node]; all.base.has[start] {
		if certain.base.has[start] {
			c.Certain--
		} else {
			c.Possible--
		}
		counts[Node] = c
	}
	return counts
}

// listCounts orders counts.
func listCounts(counts map[string]Count) []Count {
	list := slices.SortedFunc(maps.Values(counts), func(a, b Count) int { return kindOrder[a.Kind] - kindOrder[b.Kind] })
	return slices.DeleteFunc(list, func(c Count) bool { return c.Certain+c.Possible == 0 || c.Kind == ClusterAdmin })
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
	return slices.ContainsFunc(g.out[node], func(e edge) bool {
		return e.row != 0 && e.row.code() == ControlPlaneNode && e.dependsOn == 0 && g.keys[e.to].kind == isClusterAdmin
	})
}

// counts are of vertices by kind.
func (g *Graph) counts(start vertex, certain *solver, of []vertex) map[string]Count {
	counts := map[string]Count{}
	for _, v := range of {
		if !g.countsFor(v, start) {
			continue
		}
		c := counts[holdingKinds[g.keys[v].kind]]
		c.Kind = holdingKinds[g.keys[v].kind]
		if certain.has(v) {
			c.Certain++
		} else {
			c.Possible++
		}
		counts[c.Kind] = c
	}
	return counts
}

// countsFor reports whether a vertex counts for what a node reaches. The credential of a node
// counts as a part of it, and a namespace or identity once, however pods are made in it or it is held.
func (g *Graph) countsFor(v, start vertex) bool {
	k := g.keys[v]
	credential := k.kind == isNodeUser || k.kind == isUser && strings.HasPrefix(k.name, nodeidentity.UserPrefix)
	repeated := k.kind == isNamespace && k.variant != 0 || k.kind == isAssociated || g.alsoImpersonated[v] ||
		k.kind == isServiceAccount && k.variant != scopedHolding && g.scoped[inventory.Name{Namespace: k.namespace, Name: k.name}] != nil
	return int(k.kind) < len(holdingKinds) && k.kind != isPod && !credential && !repeated && v != start
}

// vertices lists the vertices of the base, in order.
func (b *base) vertices() []vertex {
	var all []vertex
	for v, in := range b.has {
		if in {
			all = append(all, vertex(v))
		}
	}
	return all
}

// setHash is the same for sets of the same vertices.
type setHash [2]uint64

// add adds a vertex that is not in the set. Each half mixes its bits in its own way, after
// Vigna's splitmix64.
func (h *setHash) add(v vertex) {
	for i, seed := range [...]uint64{0x9e3779b97f4a7c15, 0xd1342543de82ef95} {
		x := (uint64(v) + 1) * seed
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		h[i] += x ^ x>>31
	}
}

// remove removes a vertex that is in the set.
func (h *setHash) remove(v vertex) {
	var one setHash
	one.add(v)
	h[0], h[1] = h[0]-one[0], h[1]-one[1]
}

// hash is that of all counted vertices that are reached, but for the start.
func (s *solver) hash(start vertex) setHash {
	h := s.base.hash
	if s.base.has[start] {
		h.remove(start)
	}
	for _, v := range s.reached {
		if s.countsFor(v, start) {
			h.add(v)
		}
	}
	return h
}

// hashWith is that of all counted vertices that are reached, and the start.
func (s *solver) hashWith(start vertex) setHash {
	h := s.hash(start)
	h.add(start)
	return h
}
