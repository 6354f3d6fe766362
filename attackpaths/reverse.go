package attackpaths

// reverse finds the vertices that lead to others: it marks a vertex and what leads to it, the nearest first.
type reverse struct {
	*Graph
	// sources[first[v]:first[v+1]] are the vertices with edges to vertex v.
	first   []int32
	sources []vertex
	// parts are the vertices of joins from which marks go back, by the vertex that the joins lead to.
	parts map[vertex][]vertex
	// next is the vertex after a marked one, and none for one that was marked by itself.
	next   []vertex
	marked []bool
	// order has the marked vertices in the order in which they were.
	order []vertex
}

// reverse returns one without marks. Parts selects those vertices of a join from which marks go back; if it is nil,
// joins are not followed.
func (g *Graph) reverse(possible bool, parts func(*join) []vertex) *reverse {
	r := &reverse{
		Graph: g, first: make([]int32, len(g.keys)+1), parts: map[vertex][]vertex{},
		next: make([]vertex, len(g.keys)), marked: make([]bool, len(g.keys)),
	}
	each := func(do func(from, to vertex)) {
		for v := range g.out {
			for i := range g.out[v] {
				if e := &g.out[v][i]; possible || e.dependsOn == 0 {
					do(vertex(v), e.to)
				}
			}
		}
	}
	each(func(_, to vertex) { r.first[to+1]++ })
	for v := range g.keys {
		r.first[v+1] += r.first[v]
	}
	r.sources = make([]vertex, r.first[len(g.keys)])
	place := make([]int32, len(g.keys))
	each(func(from, to vertex) {
		r.sources[r.first[to]+place[to]] = from
		place[to]++
	})
	for i := range g.joins {
		if j := &g.joins[i]; parts != nil && (possible || j.dependsOn == 0) {
			r.parts[j.to] = append(r.parts[j.to], parts(j)...)
		}
	}
	return r
}

// leadsToGoal marks what reaches the goal without joins.
func (g *Graph) leadsToGoal(possible bool) *reverse {
	r := g.reverse(possible, nil)
	r.mark(g.goal)
	return r
}

// mark marks a vertex and what leads to it.
func (r *reverse) mark(v vertex) {
	done := len(r.order)
	r.add(v, none)
	for ; done < len(r.order); done++ {
		to := r.order[done]
		for _, from := range r.sources[r.first[to]:r.first[to+1]] {
			r.add(from, to)
		}
		for _, from := range r.parts[to] {
			r.add(from, to)
		}
	}
}

func (r *reverse) add(v, next vertex) {
	if !r.marked[v] {
		r.marked[v], r.next[v] = true, next
		r.order = append(r.order, v)
	}
}
