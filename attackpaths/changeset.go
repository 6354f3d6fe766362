package attackpaths

import (
	"cmp"
	"maps"
	"slices"
)

// set finds changes that together help all nodes that changes can help.
func (a *advisor) set(advice *Advice) {
	var taken []changeKey
	for {
		taken = a.prune(a.extend(taken))
		// The reduced cluster is checked against the whole one.
		b := a.build(a.whole.without(a.cluster, taken))
		reach := b.reachGoal(a.nodes)
		_, expected := a.evaluate(taken)
		if !slices.Equal(reach, expected) {
			a.unreduced = true
			continue
		}
		for _, k := range taken {
			advice.Set = append(advice.Set, a.describe(k))
		}
		advice.Left = countReach(reach)
		advice.Remaining = a.remaining(b, reach)
		return
	}
}

// extend takes one change after the other, the one that helps most nodes first.
func (a *advisor) extend(taken []changeKey) []changeKey {
	b, reach := a.evaluate(taken)
	for len(taken) < a.options.Limit && a.remains(reach) > 0 {
		candidates := slices.DeleteFunc(a.candidates(b, reach), func(c candidate) bool {
			return a.bound(c) == 0 || slices.Contains(taken, c.changeKey) // the node still requests tokens without a mount
		})
		if len(candidates) == 0 {
			break
		}
		best, most := candidates[0].changeKey, 0
		for i, c := range candidates {
			if most >= a.bound(c) || i >= a.options.Limit {
				break // it helps no more nodes than it has paths of
			}
			_, after := a.evaluate(append(slices.Clip(taken), c.changeKey))
			if n := a.remains(reach) - a.remains(after); n > most {
				best, most = c.changeKey, n
			}
		}
		taken = append(taken, best)
		b, reach = a.evaluate(taken)
	}
	return taken
}

// bound is how many nodes a change can help.
func (a *advisor) bound(c candidate) int {
	if a.options.Possible {
		return c.entirely
	}
	return c.certain
}

// remains counts the nodes that the set does not help yet.
func (a *advisor) remains(reach []Certainty) int {
	n := countReach(reach)
	if a.options.Possible {
		return n.Certain + n.Possible
	}
	return n.Certain
}

// prune leaves out the changes that the others do not need.
func (a *advisor) prune(taken []changeKey) []changeKey {
	_, reach := a.evaluate(taken)
	for i := 0; i < len(taken); {
		others := slices.Delete(slices.Clone(taken), i, i+1)
		if _, after := a.evaluate(others); a.remains(after) == a.remains(reach) {
			taken = others
		} else {
			i++
		}
	}
	return taken
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

// candidate is a change with the number of nodes that have it on a path.
type candidate struct {
	changeKey
	certain, entirely int
}

// candidates are the changes on one path of each node, those on the paths of most nodes first.
// Of nodes that reach cluster-admin certainly, the path is certain.
func (a *advisor) candidates(b *builder, reach []Certainty) []candidate {
	counts := map[changeKey]candidate{}
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
			for _, change := range a.lasting(changes) {
				c := counts[change]
				c.changeKey = change
				c.entirely++
				if certainty == Certain {
					c.certain++
				}
				counts[change] = c
			}
		}
	}
	return slices.SortedFunc(maps.Values(counts), func(c, d candidate) int {
		return cmp.Or(cmp.Compare(d.certain, c.certain), cmp.Compare(d.entirely, c.entirely), c.changeKey.compare(d.changeKey))
	})
}
