package attackpaths

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/node-authorizer/node-authorizer/inventory"
)

// Difference is starts that reach the same holdings of one kind in one state of a cluster and not in
// another, or not with the same certainty.
type Difference struct {
	// Kind is that of the holdings.
	Kind string
	// Before and After say how the holdings are reached in the two states, through cluster-admin too.
	Before, After Certainty
	// Starts are of one kind: nodes, service accounts, or the objects that pods are made from. The path begins at the
	// first, or at a pod of it; the others are sorted. A start that is also in Reached does not reach itself.
	Starts []Holding
	// Reached are sorted.
	Reached []Holding
	// Except are holdings of a start that it reaches in both states alike, or that are in another row.
	Except map[Holding][]Holding
	// Path leads from the first of the starts to the first holding that changes for it, in the state in
	// which it is reached with more certainty.
	Path []Step
	// Expected says why what is reached more is no finding; empty for findings.
	Expected string
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

// distance is 2 between no and certain, else 1.
func (c *Difference) distance() int {
	return int(max(c.Before, c.After)) - int(min(c.Before, c.After))
}

// Widened reports whether the holdings are reached with more certainty after than before.
func (c *Difference) Widened() bool { return c.After > c.Before }

// Comparison is what changes between two states of a cluster. The lists begin with new and changed workloads, and
// with cluster-admin, then nodes, secrets, service accounts, namespaces, users, groups and pods.
type Comparison struct {
	// Widened are findings. Expected is reached more too, and is none: see Difference.Expected.
	Widened, Expected, Narrowed []Difference
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
//
// Workloads whose pods are new or changed are starts too: who breaks into one of the pods. What is new itself, and
// is reached by who reached all of its kind in its namespace before, is expected, and so is what the control plane's
// accounts come to reach; only cluster-admin that is certain is a finding for these.
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
	r := c.result(slices.Concat(found...))
	r.add(c.workloads())
	return r
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
	// existed are the holdings of the first state, by id, and kin those of each kind.
	existed []bool
	kin     map[kin][]int32
	// controllers are accounts of the control plane, and labels the rights to label nodes, in the first state.
	controllers map[inventory.Name]bool
	labels      []vertex
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

// compareDifferences orders changes: nodes before service accounts, and what changes from no to
// certain before what was possible.
func compareDifferences(a, b *Difference) int {
	return cmp.Or(
		compareBools(!a.ofWorkload(), !b.ofWorkload()),
		changeOrder[a.Kind]-changeOrder[b.Kind],
		cmp.Compare(a.Starts[0].Kind, b.Starts[0].Kind),
		-cmp.Compare(a.distance(), b.distance()),
		-cmp.Compare(max(a.Before, a.After), max(b.Before, b.After)),
		-cmp.Compare(len(a.Starts), len(b.Starts)),
		-cmp.Compare(len(a.Reached), len(b.Reached)),
		a.Starts[0].Compare(b.Starts[0]), a.Reached[0].Compare(b.Reached[0]), cmp.Compare(a.Before, b.Before),
	)
}
