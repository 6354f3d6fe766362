package attackpaths

// closure finds what is reached without the ways to it. It starts from a base that was computed
// once and that many starts have in common, so that each start costs what only it reaches.
type closure struct {
	*Graph
	possible bool
	base     []bool
	baseHash setHash // of what counts in the base
	// baseOpen counts what a join waits for after the base.
	baseOpen []int32

	round     int32
	seen      []int32
	joinRound []int32
	open      []int32
	// reached are the vertices beyond the base, in the order in which they were found.
	reached []vertex
}

// newClosure computes the base from its starts.
func (g *Graph) newClosure(possible bool, base []vertex) *closure {
	c := &closure{
		Graph: g, possible: possible, base: make([]bool, len(g.keys)), baseOpen: make([]int32, len(g.joins)),
		seen: make([]int32, len(g.keys)), joinRound: make([]int32, len(g.joins)), open: make([]int32, len(g.joins)),
	}
	for i := range g.joins {
		c.baseOpen[i] = int32(len(g.joins[i].from))
	}
	c.run(none, base...)
	for _, v := range c.reached {
		c.base[v] = true
		if g.counted(v, none) {
			c.baseHash.add(v)
		}
	}
	for i, round := range c.joinRound {
		if round == c.round {
			c.baseOpen[i] = c.open[i]
		}
	}
	return c
}

// run finds what is reached from vertices beyond the base, until the end is.
func (c *closure) run(end vertex, starts ...vertex) {
	c.round++
	c.reached = c.reached[:0]
	for _, v := range starts {
		c.add(v)
	}
	for i := 0; i < len(c.reached) && !(end != none && c.has(end)); i++ {
		v := c.reached[i]
		for _, e := range c.out[v] {
			if c.possible || e.dependsOn == 0 {
				c.add(e.to)
			}
		}
		for _, place := range c.joinsOf[v] {
			c.arrive(place)
		}
	}
}

func (c *closure) add(v vertex) {
	if !c.has(v) {
		c.seen[v] = c.round
		c.reached = append(c.reached, v)
	}
}

func (c *closure) arrive(place int32) {
	if c.joinRound[place] != c.round {
		c.joinRound[place], c.open[place] = c.round, c.baseOpen[place]
	}
	c.open[place]--
	if j := &c.joins[place]; c.open[place] == 0 && (c.possible || j.dependsOn == 0) {
		c.add(j.to)
	}
}

func (c *closure) has(v vertex) bool { return c.base[v] || c.seen[v] == c.round }
