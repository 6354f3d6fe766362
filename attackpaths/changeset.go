package attackpaths

import (
	"maps"
	"slices"
)

// set finds changes that together help all nodes that changes can help.
func (a *advisor) set(advice *Advice) {
	var taken []changeKey
	for {
		all, left := a.extend(taken)
		taken = prune(all, func(others []changeKey) bool {
			_, after := a.evaluate(others)
			return a.remains(after) == a.remains(left)
		})
		_, expected := a.evaluate(taken)
		// The reduced cluster is checked against the whole one.
		b := a.graph.again(a.whole.without(a.cluster, taken))
		reach := b.reachGoal(a.nodes)
		if slices.Equal(reach, expected) {
			for _, k := range taken {
				advice.Set = append(advice.Set, a.describe(k))
			}
			advice.Left, advice.Remaining = countReach(reach), a.remaining(b, reach)
			return
		}
		a.unreduced = true
	}
}

// extend takes one change after the other, the one that helps most nodes first.
func (a *advisor) extend(taken []changeKey) (all []changeKey, left []Certainty) {
	b, reach := a.evaluate(taken)
	for len(taken) < a.options.Limit && a.remains(reach) > 0 {
		candidates := slices.DeleteFunc(a.candidates(b, reach), func(c Change) bool {
			return a.bound(c) == 0 || slices.Contains(taken, c.key) // the node still requests tokens without a mount
		})
		if len(candidates) == 0 {
			break
		}
		best, most := candidates[0].key, 0
		for i, c := range candidates {
			if most >= a.bound(c) || i >= a.options.Limit {
				break // it helps no more nodes than it has paths of
			}
			_, after := a.evaluate(append(slices.Clip(taken), c.key))
			if n := a.remains(reach) - a.remains(after); n > most {
				best, most = c.key, n
			}
		}
		taken = append(taken, best)
		b, reach = a.evaluate(taken)
	}
	return taken, reach
}

// bound is how many nodes a change can help.
func (a *advisor) bound(c Change) int {
	if a.options.Possible {
		return c.Entirely
	}
	return c.Certain
}

// remains counts the nodes that the set does not help yet.
func (a *advisor) remains(reach []Certainty) int {
	n := countReach(reach)
	if a.options.Possible {
		return n.Certain + n.Possible
	}
	return n.Certain
}

// prune leaves out each change without which the others are enough.
func prune(changes []changeKey, enough func([]changeKey) bool) []changeKey {
	for i := len(changes) - 1; i >= 0; i-- {
		if others := slices.Delete(slices.Clone(changes), i, i+1); enough(others) {
			changes = others
		}
	}
	return changes
}

// remaining is the path of the first node that the changes do not help.
func (a *advisor) remaining(b *builder, reach []Certainty) []Step {
	for _, certainty := range [...]Certainty{Certain, Possible} {
		i := slices.Index(reach, certainty)
		if i < 0 || certainty == Possible && !a.options.Possible {
			continue
		}
		s := b.solver(certainty == Possible)
		defer b.release(s)
		s.solveUntil(b.index[key{kind: isNode, name: a.nodes[i]}], b.goal)
		return s.path(b.goal)
	}
	return nil
}

// candidates are the changes on one path of each node, with the numbers of nodes that have them, those on the paths of most nodes
// first. Of nodes that reach cluster-admin certainly, the path is certain.
func (a *advisor) candidates(b *builder, reach []Certainty) []Change {
	counts := map[changeKey]Change{}
	for _, certainty := range [...]Certainty{Certain, Possible} {
		wanted := map[vertex]bool{}
		for i, name := range a.nodes {
			if reach[i] == certainty {
				wanted[b.index[key{kind: isNode, name: name}]] = true
			}
		}
		if len(wanted) == 0 {
			continue
		}
		for _, changes := range b.changesOf(certainty == Possible, wanted) {
			for _, change := range changes {
				c := counts[change]
				c.key = change
				c.Entirely++
				if certainty == Certain {
					c.Certain++
				}
				counts[change] = c
			}
		}
	}
	return slices.SortedFunc(maps.Values(counts), Change.compare)
}
