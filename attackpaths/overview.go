package attackpaths

import "slices"

// Overview is what nodes reach, by namespace and kind.
type Overview struct {
	// Cells are those of all rows. Rows that reach the same in the same way share a cell, whose paths
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
	// CertainOnly leaves out what is only possible.
	CertainOnly bool
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
	if o.CertainOnly {
		classes = slices.Clone(classes)
		for i := range classes {
			if c := &classes[i]; c.ClusterAdmin == Possible {
				c.ClusterAdmin = No
			}
		}
	}
	rows, keys := g.overviewRows(classes, o)
	all := &Overview{Rows: rows}
	places, first := map[cellKey]int32{}, make([][]int, len(rows))
	for i := range rows {
		rows[i].Cells = make([]int32, len(keys[i]))
		for j, k := range keys[i] {
			at, known := places[k]
			if !known {
				at = int32(len(places))
				places[k] = at
				first[i] = append(first[i], j)
			}
			rows[i].Cells[j] = at
		}
	}
	all.Cells = make([]Cell, len(places))
	inParallel(len(rows), func(i int) {
		row := &rows[i]
		o.search(g, row.Nodes[0], row.ClusterAdmin, func(s *overviewSearch) {
			if w := s.adminWay(); s.admin != No {
				row.Path = w.solver.path(w.vertex)
			}
			for _, j := range first[i] {
				all.Cells[row.Cells[j]] = s.cell(s.groups[j])
			}
		})
	})
	return all
}

// overviewRows makes the rows without their cells and paths, and the keys of their cells.
func (g *Graph) overviewRows(classes []Class, o OverviewOptions) ([]OverviewRow, [][]cellKey) {
	type member struct {
		class int
		node  string
		keys  rowKeys
	}
	var members []member
	for i, c := range classes {
		names := c.Nodes
		if c.ClusterAdmin == No {
			names = names[:1] // the others reach the same
		}
		for _, name := range names {
			members = append(members, member{class: i, node: name})
		}
	}
	inParallel(len(members), func(i int) {
		m := &members[i]
		o.search(g, m.node, classes[m.class].ClusterAdmin, func(s *overviewSearch) { m.keys = s.keysOfRow() })
	})
	var rows []OverviewRow
	var keys [][]cellKey
	index := map[[2]any]int{}
	for _, m := range members {
		c := classes[m.class]
		at, known := index[[2]any{m.class, m.keys.alone}]
		if !known {
			at, known = index[[2]any{m.class, m.keys.withStart}]
		}
		if !known {
			at = len(rows)
			rows = append(rows, OverviewRow{ClusterAdmin: c.ClusterAdmin, ControlPlane: c.ControlPlane})
			keys = append(keys, m.keys.cells)
		}
		index[[2]any{m.class, m.keys.alone}], index[[2]any{m.class, m.keys.withStart}] = at, at
		if c.ClusterAdmin == No {
			rows[at].Nodes = c.Nodes
		} else {
			rows[at].Nodes = append(rows[at].Nodes, m.node)
		}
	}
	return rows, keys
}

// search calls a function with what a node reaches. How it reaches cluster-admin is known.
func (o *OverviewOptions) search(g *Graph, node string, admin Certainty, do func(*overviewSearch)) {
	s := &overviewSearch{Graph: g, options: *o, certain: g.solver(false), possible: g.solver(true)}
	defer g.release(s.certain)
	defer g.release(s.possible)
	s.run(g.index[key{kind: isNode, name: node}], admin)
	do(s)
}
