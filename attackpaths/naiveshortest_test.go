package attackpaths_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// stepSets are ways to derive a fact: the steps of each, sorted. No set contains another one.
type stepSets [][]int

// maxStepSets bounds the ways that are kept for a fact: the shortest ones.
const maxStepSets = 24

// with adds a way unless it contains one that is known, and reports whether it did.
func (s stepSets) with(way []int) (stepSets, bool) {
	for _, known := range s {
		if containsAll(way, known) {
			return s, false
		}
	}
	if len(s) == maxStepSets && len(way) >= len(s[maxStepSets-1]) {
		return s, false
	}
	s = slices.DeleteFunc(slices.Clone(s), func(known []int) bool { return containsAll(known, way) })
	s = append(s, way)
	slices.SortFunc(s, func(a, b []int) int { return len(a) - len(b) })
	return s[:min(len(s), maxStepSets)], true
}

// containsAll reports whether a sorted list has all elements of another one.
func containsAll(all, part []int) bool {
	i := 0
	for _, x := range all {
		if i < len(part) && part[i] == x {
			i++
		}
	}
	return i == len(part)
}

func union(a, b []int) []int {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// shortest finds the number of steps of the shortest ways to each fact. A way counts each of its steps once, however
// often it needs what the step gives.
func (n *naive) shortest(start fact, possible bool) map[int]int {
	ways := map[int]stepSets{n.id(start): {nil}}
	for changed := true; changed; {
		changed = false
		for place, d := range n.derivations {
			if d.possible && !possible {
				continue
			}
			for _, way := range d.ways(place, ways) {
				all, added := ways[d.to].with(way)
				ways[d.to], changed = all, changed || added
			}
		}
	}
	steps := map[int]int{}
	for f, all := range ways {
		if len(all) > 0 {
			steps[f] = len(all[0])
		}
	}
	return steps
}

// ways combines the ways to the parts of a derivation.
func (d *derivation) ways(place int, known map[int]stepSets) stepSets {
	var own []int
	for i := range d.cost {
		own = append(own, 2*place+i)
	}
	all := stepSets{own}
	for _, f := range d.from {
		var combined stepSets
		for _, a := range all {
			for _, b := range known[f] {
				combined, _ = combined.with(union(a, b))
			}
		}
		all = combined
	}
	return all
}

func TestPathsAreTheShortest(t *testing.T) {
	paths, shared, longer := 0, 0, 0
	eachCluster(t, 240, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		n, g := newNaive(c), graphOf(t, c)
		for _, start := range rc.starts(n) {
			costs, err := g.Costs(start)
			if err != nil {
				t.Fatal(err)
			}
			found, _ := n.from(start)
			certain, possible := n.shortest(n.startFact(start), false), n.shortest(n.startFact(start), true)
			steps := map[attackpaths.Certainty]map[attackpaths.Holding]int{
				attackpaths.Certain: n.ofHoldings(certain), attackpaths.Possible: n.ofHoldings(possible),
			}
			for h, f := range found {
				if strings.HasPrefix(h.Name, "system:node:") {
					continue // a part of its node
				}
				paths++
				shortest := steps[f.certainty][h]
				if costs[h] > shortest {
					longer++
				}
				if costs[h] < f.cost {
					shared++
				}
				if costs[h] > shortest+1 || costs[h] > f.cost {
					t.Errorf("from %s to %s: %d steps, the shortest path has %d, and %d if steps count for each use",
						start, h, costs[h], shortest, f.cost)
				}
			}
		}
	})
	t.Logf("%d paths: %d use a step twice, %d are longer than the shortest", paths, shared, longer)
	if longer*500 > paths {
		t.Errorf("%d of %d paths are longer than the shortest", longer, paths)
	}
	if shared == 0 {
		t.Error("no path uses a step twice")
	}
}

// ofHoldings takes the facts that are holdings.
func (n *naive) ofHoldings(steps map[int]int) map[attackpaths.Holding]int {
	all := map[attackpaths.Holding]int{}
	for f, id := range maps.All(n.facts) {
		count, reached := steps[id]
		h, ok := n.holdingOf(f)
		if known, seen := all[h]; ok && reached && (!seen || count < known) {
			all[h] = count
		}
	}
	return all
}
