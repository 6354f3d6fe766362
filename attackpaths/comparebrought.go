package attackpaths

import "slices"

// brought is a service account, or a new secret, that new and changed workloads name.
type brought struct {
	// vertices are those of the holding in the second state.
	vertices []vertex
	// otherwise are the vertices through which it is reached without a pod of these workloads, those of a list together.
	otherwise [][]vertex
}

// findBrought finds what new and changed workloads name.
func (c *comparer) findBrought(workloads []*start) {
	c.brought = make([]*brought, len(c.holdings))
	pods := map[vertex]bool{}
	add := func(h Holding) {
		if id, known := c.idOf[h]; known && c.brought[id] == nil && (h.Kind == ServiceAccount || !c.existed(id)) {
			c.brought[id] = &brought{}
			c.broughtIDs = append(c.broughtIDs, id)
		}
	}
	for _, w := range workloads {
		for _, v := range w.after {
			p := c.after.podOf(v)
			pods[v] = true
			add(Holding{Kind: ServiceAccount, Namespace: p.Namespace, Name: p.ServiceAccount})
			for _, name := range slices.Concat(p.Secrets, p.PullSecrets) {
				add(Holding{Kind: Secret, Namespace: p.Namespace, Name: name})
			}
		}
	}
	if len(c.broughtIDs) > 0 {
		c.findOtherWays(pods)
	}
}

// findOtherWays finds how what workloads name is reached without their pods.
func (c *comparer) findOtherWays(pods map[vertex]bool) {
	of := func(v vertex) *brought {
		if id := c.after.ids[v]; id >= 0 {
			return c.brought[id]
		}
		return nil
	}
	for v := range c.after.out {
		from := of(vertex(v))
		if from != nil {
			from.vertices = append(from.vertices, vertex(v))
		}
		for _, e := range c.after.out[v] {
			b := of(e.to)
			if b == nil || b == from {
				continue
			}
			ofPod := e.row != 0 && e.row.ofPod() && e.arg >= 0 && pods[c.after.firstPod+vertex(e.arg)]
			if !ofPod && e.row != rowOf(SecretOnNode) { // a new secret is on a node because of a pod that names it
				b.otherwise = append(b.otherwise, []vertex{vertex(v)})
			}
		}
	}
	for i := range c.after.joins {
		j := &c.after.joins[i]
		if b := of(j.to); b != nil {
			b.otherwise = append(b.otherwise, j.from)
		}
	}
}

// isBrought reports whether only the pods of new and changed workloads bring a holding to a node or service account, and
// it gives nothing else that is new: no right, and no other holding.
func (s *groupSearch) isBrought(id int32, from *start, l levels) bool {
	b := s.brought[id]
	if b == nil || isWorkload(from.holding) || len(from.before) == 0 {
		return false
	}
	isOtherWay := func(all []vertex) bool {
		return !slices.ContainsFunc(all, func(v vertex) bool { return !s.after.possible.has(v) })
	}
	had := s.before.possible
	if l.after == Certain {
		had = s.before.certain
	}
	isNew := func(v vertex) bool {
		u := s.comparer.after.other[v]
		return u == none || !had.has(u)
	}
	return !slices.ContainsFunc(b.otherwise, isOtherWay) && !slices.ContainsFunc(s.givenBy(id), isNew)
}

// givenBy are the rights and other holdings that a brought holding leads to.
func (s *groupSearch) givenBy(id int32) []vertex {
	all, known := s.given[id]
	if !known {
		g := s.comparer.after.Graph
		f := g.solver(true)
		defer g.release(f)
		f.solve(s.brought[id].vertices...)
		for _, v := range f.reached {
			if s.counts(v, id) {
				all = append(all, v)
			}
		}
		s.given[id] = all
	}
	return all
}

// counts reports whether a vertex to which a holding leads is more than the holding: a right, one that is not followed, rights
// of an identity that count together, or another holding.
func (s *groupSearch) counts(v vertex, id int32) bool {
	side := &s.comparer.after
	switch kind := side.keys[v].kind; {
	case kind == isFact:
		return false // it leads to holdings, or comes from rights
	case kind == isSubject, kind == isRole:
		return len(side.openRightsOf([]vertex{v}).entries) > 0
	case side.ids[v] == id, kind == isScoped:
		return len(side.joinsOf[v]) > 0
	}
	return true
}
