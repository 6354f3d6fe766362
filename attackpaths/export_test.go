package attackpaths

// Costs returns how many steps the cheapest derivation of each holding has that From reports.
func (g *Graph) Costs(start Holding) (map[Holding]int, error) {
	v, err := g.find(start)
	if err != nil {
		return nil, err
	}
	costs := map[Holding]int{}
	certain, possible := g.newSolver(false), g.newSolver(true)
	certain.solve(v)
	possible.solve(v)
	for _, v := range possible.reached {
		h, ok := g.keys[v].holding()
		s := possible
		if certain.has(v) {
			s = certain
		}
		if _, seen := costs[h]; ok && !seen && !s.isPartOfNode(v) {
			costs[h] = int(s.cost[v])
		}
	}
	return costs, nil
}
