package attackpaths

// reach searches for what starts reach certainly, and for what they reach at all.
type reach struct{ certain, possible *solver }

// newReach returns a search that is to be released.
func (g *Graph) newReach() reach { return reach{g.solver(false), g.solver(true)} }

func (r reach) release() {
	r.certain.release(r.certain)
	r.possible.release(r.possible)
}

// solve finds what is reached from one of some vertices.
func (r reach) solve(starts ...vertex) {
	r.certain.solve(starts...)
	r.possible.solve(starts...)
}

// until says how a start reaches an end, and searches no further. It does not search for what is possible if the end is
// reached certainly.
func (r reach) until(start, end vertex) Certainty {
	if r.certain.solveUntil(start, end); !r.certain.has(end) {
		r.possible.solveUntil(start, end)
	}
	return r.of(end)
}

// of says how a vertex is reached.
func (r reach) of(v vertex) Certainty {
	switch {
	case r.certain.has(v):
		return Certain
	case r.possible.has(v):
		return Possible
	}
	return No
}

// by is the search that finds what is reached with a certainty.
func (r reach) by(c Certainty) *solver {
	if c == Certain {
		return r.certain
	}
	return r.possible
}

// eachGroup calls a function for each group of some starts, with a search beyond what the group has in common, on several
// processors.
func (g *Graph) eachGroup(starts []vertex, do func([]vertex, reach)) {
	groups := g.groups(starts)
	inParallel(len(groups), func(i int) {
		r := g.reachBeyond(groups[i])
		defer r.release()
		do(groups[i], r)
	})
}

// reachBeyond returns a search beyond what all starts of a group have in common.
func (g *Graph) reachBeyond(group []vertex) reach {
	r := g.newReach()
	for _, s := range [...]*solver{r.certain, r.possible} {
		s.solve(g.successorsOfAll(group, s.possible)...)
		s.keep()
	}
	return r
}

// reachGoal says how each of some nodes reaches the goal.
func (g *Graph) reachGoal(names []string) []Certainty {
	found, places := make([]Certainty, len(names)), map[vertex]int{}
	var nodes []vertex
	for i, name := range names {
		if v, ok := g.index[key{kind: isNode, name: name}]; ok {
			places[v], nodes = i, append(nodes, v)
		}
	}
	g.eachGroup(nodes, func(group []vertex, r reach) {
		for _, v := range group {
			found[places[v]] = r.until(v, g.goal)
		}
	})
	return found
}

// reversed returns the graph with each edge turned round and without steps: a search in it finds what leads to a vertex,
// the nearest first. Parts selects the vertices of a join that lead to where it does; without parts, none does.
func (g *Graph) reversed(possible bool, parts func(*join) []vertex) *Graph {
	r := &Graph{keys: g.keys, out: make([][]edge, len(g.keys)), joinsOf: make([][]int32, len(g.keys))}
	for v := range g.out {
		for i := range g.out[v] {
			if e := &g.out[v][i]; possible || e.dependsOn == 0 {
				r.out[e.to] = append(r.out[e.to], edge{to: vertex(v)})
			}
		}
	}
	for i := range g.joins {
		if j := &g.joins[i]; parts != nil && (possible || j.dependsOn == 0) {
			for _, v := range parts(j) {
				r.out[j.to] = append(r.out[j.to], edge{to: v})
			}
		}
	}
	return r
}
