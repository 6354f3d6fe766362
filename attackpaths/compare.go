package attackpaths

import (
	"cmp"
	"slices"
)

// Difference is starts that reach the same holdings of one kind in one state of a cluster and not in
// another, or not with the same certainty.
type Difference struct {
	// Kind is the kind of the holdings.
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
// accounts come to reach; only cluster-admin that is certain is a finding for these. A service account or a new secret that
// only pods of these workloads bring is expected too, unless it gives a right or another holding that is new.
func Compare(before, after *Graph, o CompareOptions) Comparison {
	c := newComparer(before, after, o)
	starts := c.starts()
	var r Comparison
	for _, s := range starts {
		r.Starts = append(r.Starts, Start{s.holding, len(s.before) > 0, len(s.after) > 0})
	}
	groups := c.groups(starts)
	found := make([][]*delta, len(groups))
	inParallel(len(groups), func(i int) { found[i] = c.compareGroup(groups[i]) })
	deltas := slices.Concat(found...)
	rows := make([][]*changedRow, len(deltas))
	inParallel(len(deltas), func(i int) { rows[i] = c.rowsOf(deltas[i]) })
	for _, x := range merge(slices.Concat(rows...)) {
		switch {
		case !x.Widened():
			r.Narrowed = append(r.Narrowed, x.Difference)
		case x.Expected != "":
			r.Expected = append(r.Expected, x.Difference)
		default:
			r.Widened = append(r.Widened, x.Difference)
		}
	}
	for _, list := range [...][]Difference{r.Widened, r.Expected, r.Narrowed} {
		slices.SortFunc(list, func(a, b Difference) int { return compareDifferences(&a, &b) })
	}
	return r
}

// changeOrder sorts kinds of holdings by what a reader wants to know first.
var changeOrder = map[string]int{
	ClusterAdmin: 0, Node: 1, Secret: 2, ServiceAccount: 3, Namespace: 4, User: 5, Group: 6, Pod: 7,
}

// compareDifferences orders changes: nodes before service accounts, and what changes from no to
// certain before what was possible.
func compareDifferences(a, b *Difference) int {
	return cmp.Or(
		compareBools(!isWorkload(a.Starts[0]), !isWorkload(b.Starts[0])),
		changeOrder[a.Kind]-changeOrder[b.Kind],
		cmp.Compare(a.Starts[0].Kind, b.Starts[0].Kind),
		-cmp.Compare(a.distance(), b.distance()),
		-cmp.Compare(max(a.Before, a.After), max(b.Before, b.After)),
		-cmp.Compare(len(a.Starts), len(b.Starts)),
		-cmp.Compare(len(a.Reached), len(b.Reached)),
		a.Starts[0].Compare(b.Starts[0]), a.Reached[0].Compare(b.Reached[0]), cmp.Compare(a.Before, b.Before),
	)
}
