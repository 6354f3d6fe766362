package attackpaths

// Costs returns how many steps the cheapest derivation of each holding has that From reports.
func (g *Graph) Costs(start Holding) (map[Holding]int, error) {
	v, err := g.find(start)
	if err != nil {
		return nil, err
	}
	costs := map[Holding]int{}
	certain, possible := g.solver(false), g.solver(true)
	defer g.release(certain)
	defer g.release(possible)
	certain.solve(v)
	possible.solve(v)
	for _, w := range g.ways(v, certain, possible) {
		h, _ := g.keys[w.vertex].holding()
		costs[h] = int(w.cost())
	}
	return costs, nil
}

// Edges returns how many edges and parts of joins the graph has.
func (g *Graph) Edges() int {
	n := 0
	for v := range g.out {
		n += len(g.out[v]) + len(g.joinsOf[v])
	}
	return n
}
