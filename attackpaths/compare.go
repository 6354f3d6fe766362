package attackpaths

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
)

// Difference is starts that reach the same holdings of one kind in one state of a cluster and not in
// another, or not with the same certainty.
type Difference struct {
	// Kind is that of the holdings.
	Kind string
	// Before and After say how the holdings are reached in the two states, through cluster-admin too.
	Before, After Certainty
	// Starts are of one kind. The path begins at the first; the others are sorted. A start that is also
	// in Reached does not reach itself.
	Starts []Holding
	// Reached are sorted.
	Reached []Holding
	// Except are holdings of a start that it reaches in both states alike, or that are in another row.
	Except map[Holding][]Holding
	// Path leads from the first of the starts to the first holding that changes for it, in the state in
	// which it is reached with more certainty.
	Path []Step
	// Uses are the objects that steps of the path need and that could be what the other state does not
	// have, by their steps.
	Uses []Use
}

// Use is an object that a step of a path needs.
type Use struct {
	// Step is the place of the step in the path.
	Step int
	// Object is a binding, role, pod, namespace, node, service account or secret.
	Object Holding
}

// Widened reports whether the holdings are reached with more certainty after than before.
func (c *Difference) Widened() bool { return c.After > c.Before }

// Comparison is what changes between two states of a cluster. Both lists begin with cluster-admin,
// then nodes, secrets, service accounts, namespaces, users, groups and pods.
type Comparison struct {
	Widened, Narrowed []Difference
	// Starts are those that were compared: the nodes and service accounts of both states.
	Starts []Start
}

// Start is a node or service account, and which states have it.
type Start struct {
	Holding
	InBefore, InAfter bool
}

// CompareOptions select what is told apart.
type CompareOptions struct {
	// Changed reports whether an object differs between the states: only such objects are in
	// Difference.Uses. If it is nil, each may differ.
	Changed func(Holding) bool
}

// Compare says what nodes and service accounts reach in one state of a cluster and not in another.
// Both graphs must have the same custom techniques.
//
// A holding that is reached through cluster-admin, with the same certainty, is no change of its own:
// cluster-admin owns everything. The same is true for the credential of a node that is reached. Pods
// count if both states have them; what other pods bring counts in any case.
func Compare(before, after *Graph, o CompareOptions) Comparison {
	c := newComparer(before, after, o)
	groups := c.groups()
	found := make([][]*delta, len(groups))
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), max(1, len(groups))) {
		wg.Go(func() {
			for i := range next {
				found[i] = c.compareGroup(groups[i])
			}
		})
	}
	for i := range groups {
		next <- i
	}
	close(next)
	wg.Wait()
	return c.result(slices.Concat(found...))
}

// comparer compares two graphs. Everything that both have is numbered alike: holdings by an id.
type comparer struct {
	before, after side
	options       CompareOptions
	// holdings are by id.
	holdings []Holding
	admin    int32
	// nodeOf is the node of which a holding is the credential, and credentialOf the credential of a
	// node; -1 for others.
	nodeOf, credentialOf []int32
}

// side is one of the two graphs, and what the other does not have.
type side struct {
	*Graph
	isAfter bool
	// other are the vertices of the other graph; none if it has no such vertex.
	other []vertex
	// ids are those of holdings; -1 for other vertices and for what does not count.
	ids []int32
	// changed are vertices with edges that the other graph does not have, and one of each join that
	// it does not have.
	changed  []vertex
	newJoins map[int32]bool
	affected []bool
}

// start is a node or service account, as a vertex of each graph; none if it does not have it.
type start struct {
	holding       Holding
	before, after vertex
}

func compareStarts(a, b start) int { return a.holding.Compare(b.holding) }

// starts are the nodes and service accounts of both graphs, sorted.
func (c *comparer) starts() []start {
	index := map[Holding]int{}
	var all []start
	for _, v := range c.before.starts {
		h, _ := c.before.keys[v].holding()
		index[h] = len(all)
		all = append(all, start{h, v, none})
	}
	for _, v := range c.after.starts {
		h, _ := c.after.keys[v].holding()
		if at, ok := index[h]; ok {
			all[at].after = v
		} else {
			all = append(all, start{h, none, v})
		}
	}
	slices.SortFunc(all, compareStarts)
	return all
}

// changeOrder sorts kinds of holdings by what a reader wants to know first.
var changeOrder = map[string]int{
	ClusterAdmin: 0, Node: 1, Secret: 2, ServiceAccount: 3, Namespace: 4, User: 5, Group: 6, Pod: 7,
}

// compareDifferences orders changes.
func compareDifferences(a, b *Difference) int {
	return cmp.Or(
		changeOrder[a.Kind]-changeOrder[b.Kind],
		-cmp.Compare(max(a.Before, a.After), max(b.Before, b.After)),
		cmp.Compare(a.Starts[0].Kind, b.Starts[0].Kind),
		-cmp.Compare(len(a.Starts), len(b.Starts)),
		-cmp.Compare(len(a.Reached), len(b.Reached)),
		a.Starts[0].Compare(b.Starts[0]), a.Reached[0].Compare(b.Reached[0]), cmp.Compare(a.Before, b.Before),
	)
}
