package attackpaths

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Overview is what nodes reach, by namespace and kind.
type Overview struct {
	// Cells are the cells of all rows. Rows that reach the same in the same way share a cell, whose paths
	// start from the first node of the first of these rows.
	Cells []Cell
	Rows  []OverviewRow
}

// OverviewRow is nodes that reach the same, but for themselves, their credentials and the pods on
// them, and that reach cluster-admin in the same way.
type OverviewRow struct {
	// Nodes are sorted by name. On pages, they may be other starts.
	Nodes        []string
	ClusterAdmin Certainty
	ControlPlane bool
	// Path leads from the first of the nodes to cluster-admin; empty if none does.
	Path []Step
	// Cells are the places in Overview.Cells of what the first of the nodes reaches, in the order
	// of namespaces and kinds. It is empty where cluster-admin is certain: it owns everything.
	Cells []int32
}

// OverviewOptions are options of [Graph.Overview].
type OverviewOptions struct {
	// CertainCells leaves out of cells what is only possible, but not how cluster-admin is possible.
	CertainCells bool
	// Names is how many holdings a cell lists; 20 if zero.
	Names int
}

// Overview lists what the nodes of classes reach, in the order of the classes, see
// [Graph.AllNodes]. Nodes of one class that reach cluster-admin in different ways are several rows.
func (g *Graph) Overview(classes []Class, o OverviewOptions) *Overview {
	if o.Names <= 0 {
		o.Names = 20
	}
	var nodes []overviewNode
	for _, c := range classes {
		names := c.Nodes
		if c.ClusterAdmin == No {
			names = names[:1] // the others reach the same
		}
		for _, name := range names {
			nodes = append(nodes, overviewNode{class: &c, start: g.index[key{kind: isNode, name: name}]})
		}
	}
	inParallel(len(nodes), func(i int) { o.search(g, &nodes[i], (*overviewSearch).addKeys) })
	all, rows, places := &Overview{}, map[overviewKey]int{}, map[cellKey]int32{}
	var firsts []overviewNode // of the rows
	for _, n := range nodes {
		at, known := rows[overviewKey{n.class, n.alone}]
		if !known {
			at, known = rows[overviewKey{n.class, n.withStart}]
		}
		if !known {
			at = len(firsts)
			row := OverviewRow{ClusterAdmin: n.class.ClusterAdmin, ControlPlane: n.class.ControlPlane, Cells: make([]int32, len(n.cells))}
			for i, cell := range n.cells {
				place, known := places[cell]
				if !known {
					place = int32(len(places))
					places[cell] = place
					n.lists = append(n.lists, i)
				}
				row.Cells[i] = place
			}
			all.Rows, firsts = append(all.Rows, row), append(firsts, n)
		}
		rows[overviewKey{n.class, n.alone}], rows[overviewKey{n.class, n.withStart}] = at, at
		if row := &all.Rows[at]; row.ClusterAdmin == No {
			row.Nodes = n.class.Nodes
		} else {
			row.Nodes = append(row.Nodes, g.keys[n.start].name)
		}
	}
	all.Cells = make([]Cell, len(places))
	inParallel(len(firsts), func(i int) {
		row := &all.Rows[i]
		o.search(g, &firsts[i], func(s *overviewSearch) {
			if row.ClusterAdmin != No {
				row.Path = s.admin.solver.path(s.admin.vertex)
			}
			for _, j := range firsts[i].lists {
				all.Cells[row.Cells[j]] = s.cell(s.groups[j])
			}
		})
	})
	return all
}

// cellKey is the same for cells with the same content and with paths through the same holdings.
type cellKey [16]byte

// overviewKey is the same for the nodes of one row.
type overviewKey struct {
	class *Class
	cellKey
}

// overviewNode is a node with keys of what it reaches.
type overviewNode struct {
	class *Class
	start vertex
	// Nodes of a class are in one row if alone is the same, which is without the nodes themselves, or withStart, for nodes
	// that reach each other.
	alone, withStart cellKey
	cells            []cellKey
	// lists are the places of the cells whose paths start from the node.
	lists []int
}

// overviewSearch is what one node reaches.
type overviewSearch struct {
	*Graph
	*overviewNode
	names int
	// admin is how cluster-admin is reached, if it is, and groups the ways to what is in each cell. There are none where
	// cluster-admin is certain.
	admin  way
	groups [][]way
}

// search calls a function with what a node reaches.
func (o *OverviewOptions) search(g *Graph, n *overviewNode, do func(*overviewSearch)) {
	r, certainty := g.newReach(), n.class.ClusterAdmin
	defer r.release()
	s := &overviewSearch{
		Graph: g, overviewNode: n, names: o.Names, admin: way{g.index[key{kind: isClusterAdmin}], r.by(certainty), certainty},
	}
	atLeast := Possible
	if certainty == Certain || o.CertainCells {
		atLeast = Certain
		r.until(n.start, s.admin.vertex)
	} else {
		r.solve(n.start)
	}
	if certainty != Certain {
		order := func(w way) (Certainty, int) { return w.certainty, int(w.cost()) }
		s.groups = byPlace(r.ways(n.start, atLeast), way.holding, order)
	}
	do(s)
}

// cell renders the ways to what is in one cell.
func (s *overviewSearch) cell(ways []way) Cell {
	h := ways[0].holding()
	c := Cell{Namespace: namespaceOf(h), Kind: h.Kind}
	c.From, _ = s.keys[s.start].holding()
	for i, w := range ways {
		c.count(w.certainty)
		if i < s.names && c.Kind != Pod {
			c.Listed = append(c.Listed, w.reached())
		}
	}
	return c
}

// addKeys sets the keys of what the node reaches.
func (s *overviewSearch) addKeys() {
	var rest []byte
	if s.class.ClusterAdmin != No {
		rest = s.appendWay(rest, s.admin)
	}
	nodes := setHash{}
	for _, group := range s.groups {
		cell := s.key(group)
		s.cells = append(s.cells, cell)
		switch group[0].holding().Kind {
		case Pod:
		case Node:
			for _, w := range group {
				nodes.add(w.vertex*2+vertex(w.certainty-Possible), 1)
			}
		default:
			rest = append(rest, cell[:]...)
		}
	}
	s.alone = sum(rest, nodes, 0)
	nodes.add(s.start*2+vertex(Certain-Possible), 1)
	s.withStart = sum(rest, nodes, 1)
}

func sum(text []byte, nodes setHash, withStart byte) cellKey {
	text = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(slices.Clip(text), nodes[0]), nodes[1])
	sum := sha256.Sum256(append(text, withStart))
	return cellKey(sum[:])
}

// key hashes what a cell shows. Of pods it shows only how many they are.
func (s *overviewSearch) key(ways []way) cellKey {
	h := ways[0].holding()
	text := append(append([]byte(namespaceOf(h)), 0), h.Kind...)
	for i, w := range ways {
		text = append(text, 0, byte(w.certainty))
		if h.Kind == Pod {
			continue
		}
		text = append(text, s.keys[w.vertex].name...)
		if i < s.names {
			text = s.appendWay(append(text, 0), w)
		}
	}
	return sum(text, setHash{}, 0)
}

// appendWay appends how a holding is reached. The pods that run on the start itself do not count: a DaemonSet has other
// pods on each node.
func (s *overviewSearch) appendWay(text []byte, w way) []byte {
	onStart := []row{rowOf(PodOnNode), rowOf(PodTokenOnNode), rowOf(TokenOfPodOnNode)}
	for _, v := range w.solver.Derivation(w.vertex) {
		how := w.solver.Via(v)
		if v == s.start || s.keys[v].kind == isNodeUser && how.From == s.start {
			continue
		}
		text = binary.AppendVarint(text, int64(v))
		text = binary.AppendVarint(append(text, byte(how.Edge.Row)), int64(how.Join))
		text = binary.AppendVarint(text, int64(how.Edge.DependsOn))
		if !slices.Contains(onStart, how.Edge.Row) {
			text = binary.AppendVarint(text, int64(how.Edge.Arg))
		}
	}
	return text
}

// Cell is what is reached of one kind in one namespace.
type Cell struct {
	// Namespace is empty for what is in none. A holding of kind Namespace is in its namespace.
	Namespace, Kind   string
	Certain, Possible int
	// Listed are the holdings: what is certain comes first, then what has a shorter path. In an
	// [Overview] at most OverviewOptions.Names are listed, and no pods are.
	Listed []Reached
	// From is where the paths start.
	From Holding
}

// Cells groups what is reached by namespace and kind. It leaves out cluster-admin.
func (r Result) Cells() []Cell {
	order := func(x Reached) (Certainty, int) { return x.Certainty, len(x.Path) }
	groups := byPlace(r.Reached, func(x Reached) Holding { return x.Holding }, order)
	cells := make([]Cell, len(groups))
	for i, group := range groups {
		cells[i] = Cell{Namespace: namespaceOf(group[0].Holding), Kind: group[0].Kind, Listed: group, From: r.Start}
		for _, x := range group {
			cells[i].count(x.Certainty)
		}
	}
	return cells
}

// Compare orders cells by namespace and kind.
func (c Cell) Compare(d Cell) int {
	return cmp.Or(strings.Compare(c.Namespace, d.Namespace), compareKinds(c.Kind, d.Kind))
}

func (c *Cell) count(certainty Certainty) {
	if certainty == Certain {
		c.Certain++
	} else {
		c.Possible++
	}
}

// byPlace groups what is reached by namespace and kind, in the order of these. In a group, what is certain comes first, then what
// has a shorter path.
func byPlace[T any](all []T, holding func(T) Holding, order func(T) (Certainty, int)) [][]T {
	groups := map[Holding][]T{} // by namespace and kind
	for _, x := range all {
		if h := holding(x); h.Kind != ClusterAdmin {
			place := Holding{Kind: h.Kind, Namespace: namespaceOf(h)}
			groups[place] = append(groups[place], x)
		}
	}
	places := slices.SortedFunc(maps.Keys(groups), func(a, b Holding) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), compareKinds(a.Kind, b.Kind))
	})
	sorted := make([][]T, len(places))
	for i, place := range places {
		sorted[i] = groups[place]
		slices.SortStableFunc(sorted[i], func(a, b T) int {
			x, long := order(a)
			y, longer := order(b)
			return cmp.Or(int(y)-int(x), long-longer)
		})
	}
	return sorted
}

func namespaceOf(h Holding) string {
	if h.Kind == Namespace {
		return h.Name
	}
	return h.Namespace
}
