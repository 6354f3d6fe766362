package attackpaths

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// overviewSearch is what one node reaches.
type overviewSearch struct {
	*Graph
	options           OverviewOptions
	start             vertex
	admin             Certainty
	certain, possible *solver
	// groups are the ways to what is in each cell. There are none where cluster-admin is certain.
	groups [][]way
}

// run finds what a node reaches. How it reaches cluster-admin is known.
func (s *overviewSearch) run(start vertex, admin Certainty) {
	s.start, s.admin, s.groups = start, admin, nil
	if admin == Certain {
		s.certain.solveUntil(start, s.index[key{kind: isClusterAdmin}])
		return
	}
	s.certain.solve(start)
	possible := s.certain
	switch {
	case s.options.CertainOnly:
	case !s.options.CertainCells:
		possible = s.possible
		possible.solve(start)
	case admin == Possible:
		s.possible.solveUntil(start, s.index[key{kind: isClusterAdmin}])
	}
	s.groups = byPlace(s.ways(start, s.certain, possible), s.holdingOf)
	for _, group := range s.groups {
		slices.SortStableFunc(group, func(a, b way) int {
			return cmp.Or(int(b.certainty)-int(a.certainty), int(a.cost())-int(b.cost()))
		})
	}
}

// adminWay is how cluster-admin is reached, if it is.
func (s *overviewSearch) adminWay() way {
	w := way{s.index[key{kind: isClusterAdmin}], s.certain, s.admin}
	if s.admin == Possible {
		w.solver = s.possible
	}
	return w
}

func (s *overviewSearch) holdingOf(w way) Holding {
	h, _ := s.keys[w.vertex].holding()
	return h
}

// cell renders the ways to what is in one cell.
func (s *overviewSearch) cell(ways []way) Cell {
	h := s.holdingOf(ways[0])
	c := Cell{Namespace: namespaceOf(h), Kind: h.Kind}
	c.From, _ = s.keys[s.start].holding()
	for i, w := range ways {
		c.count(w.certainty)
		if i >= s.options.Names || c.Kind == Pod {
			continue
		}
		c.Listed = append(c.Listed, Reached{Holding: s.holdingOf(w), Certainty: w.certainty, Path: w.solver.path(w.vertex)})
	}
	return c
}

// cellKey is the same for cells with the same content and with paths through the same holdings.
type cellKey [16]byte

// rowKeys are the keys of what a node reaches. Nodes are in one row if alone is the same, which is
// without the nodes themselves, or withStart, for nodes that reach each other.
type rowKeys struct {
	alone, withStart cellKey
	cells            []cellKey
}

func (s *overviewSearch) keysOfRow() rowKeys {
	var k rowKeys
	var alone, withStart []byte
	if s.admin != No {
		alone = s.appendWay(nil, s.adminWay())
		withStart = slices.Clone(alone)
	}
	nodes := setHash{}
	for _, group := range s.groups {
		cell := s.key(group)
		k.cells = append(k.cells, cell)
		switch s.holdingOf(group[0]).Kind {
		case Pod:
		case Node:
			for _, w := range group {
				nodes.add(w.vertex*2 + vertex(w.certainty-Possible))
			}
		default:
			alone, withStart = append(alone, cell[:]...), append(withStart, cell[:]...)
		}
	}
	alone = appendHash(alone, nodes)
	nodes.add(s.start*2 + vertex(Certain-Possible))
	withStart = append(appendHash(withStart, nodes), 1)
	k.alone, k.withStart = sum(alone), sum(withStart)
	return k
}

func appendHash(text []byte, h setHash) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(text, h[0]), h[1])
}

func sum(text []byte) cellKey {
	sum := sha256.Sum256(text)
	return cellKey(sum[:])
}

// key hashes what a cell shows. Of pods it shows only how many they are.
func (s *overviewSearch) key(ways []way) cellKey {
	h := s.holdingOf(ways[0])
	text := append(append([]byte(namespaceOf(h)), 0), h.Kind...)
	for i, w := range ways {
		text = append(text, 0, byte(w.certainty))
		if h.Kind == Pod {
			continue
		}
		text = append(text, s.keys[w.vertex].name...)
		if i < s.options.Names {
			text = s.appendWay(append(text, 0), w)
		}
	}
	return sum(text)
}

// appendWay appends how a holding is reached, from its end.
func (s *overviewSearch) appendWay(text []byte, w way) []byte {
	for v := w.vertex; v != none; v = w.solver.via[v].from {
		if w.solver.via[v].join >= 0 {
			for _, v := range w.solver.derivation(v) {
				text = s.appendStep(text, v, w.solver.via[v])
			}
			break
		}
		text = s.appendStep(text, v, w.solver.via[v])
	}
	return text
}

// appendStep appends how a vertex is reached from the one before it. The pods that run on the start
// itself do not count: those of a DaemonSet differ on each node.
func (s *overviewSearch) appendStep(text []byte, v vertex, how via) []byte {
	if v == s.start || s.keys[v].kind == isNodeUser && how.from == s.start {
		return text
	}
	text = binary.AppendVarint(text, int64(v))
	text = binary.AppendVarint(append(text, byte(how.edge.row)), int64(how.join))
	text = binary.AppendVarint(text, int64(how.edge.dependsOn))
	code := Code("")
	if how.edge.row != 0 {
		code = how.edge.row.code()
	}
	if code != PodOnNode && code != PodTokenOnNode && code != TokenOfPodOnNode {
		text = binary.AppendVarint(text, int64(how.edge.arg))
	}
	return text
}
