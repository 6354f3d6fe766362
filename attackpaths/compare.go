package attackpaths

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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

// changedRow is a difference while it is put together with others.
type changedRow struct {
	Difference
	ids []int32
	// uses are the objects that tell rows with the same holdings apart.
	uses string
}

type rowKey struct{ kind, uses string }

// rowsOf makes a row for each kind of holdings and each set of objects that the paths to them need.
func (c *comparer) rowsOf(d *delta) []*changedRow {
	f := c.pathFinder(d.levels)
	defer f.release()
	rows, ids := map[rowKey]*changedRow{}, d.ids
	for _, from := range d.starts {
		concerns := func(id int32) bool { return d.concerns(from, id) }
		mine := slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !concerns(id) })
		f.find(mine, from)
		for _, id := range mine {
			k := rowKey{c.holdings[id].Kind, f.usesID(id)}
			x := rows[k]
			if x == nil {
				x = &changedRow{uses: k.uses, Difference: Difference{
					Kind: k.kind, Before: d.before, After: d.after, Starts: []Holding{from.holding}, Uses: f.uses(id),
					Expected: d.expected, Except: map[Holding][]Holding{},
				}}
				if v := f.found[id]; v != none {
					x.Path = f.solver.path(v)
				}
				rows[k] = x
			}
			x.ids = append(x.ids, id)
		}
		if ids = slices.DeleteFunc(slices.Clone(ids), concerns); len(ids) == 0 {
			break
		}
	}
	for _, x := range rows {
		c.concern(x, d)
	}
	return slices.Collect(maps.Values(rows))
}

// usesID is the same for holdings that are reached because of the same objects, but for themselves. Rows of workloads
// are not told apart by objects, and not put together.
func (f *pathFinder) usesID(id int32) string {
	switch {
	case isWorkload(f.from.holding):
		return f.from.holding.String()
	case f.options.Changed == nil:
		return ""
	}
	var names []string
	for _, u := range f.uses(id) {
		if u.Object != f.holdings[id] {
			names = append(names, u.Object.String())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

func (c *comparer) sort(ids []int32) {
	slices.SortFunc(ids, func(a, b int32) int { return c.holdings[a].Compare(c.holdings[b]) })
}

// concern adds to a row what is reached, and the starts for which something in it changes. The start of the path comes first.
func (c *comparer) concern(x *changedRow, d *delta) {
	c.sort(x.ids)
	in := make(map[int32]bool, len(x.ids))
	for _, id := range x.ids {
		in[id] = true
		x.Reached = append(x.Reached, c.holdings[id])
	}
	for _, s := range d.starts {
		if !slices.ContainsFunc(x.ids, func(id int32) bool { return d.concerns(s, id) }) {
			continue
		}
		if s.holding != x.Starts[0] {
			x.Starts = append(x.Starts, s.holding)
		}
		for id := range d.except[s.holding] {
			if in[id] {
				x.Except[s.holding] = append(x.Except[s.holding], c.holdings[id])
			}
		}
		slices.SortFunc(x.Except[s.holding], Holding.Compare)
	}
}

// merge puts starts together for which the same changes.
func merge(rows []*changedRow) []*changedRow {
	index := map[string]*changedRow{}
	var all []*changedRow
	for _, x := range rows {
		id := fmt.Appendf(nil, "%q %d %d %q %s ", x.uses, x.Before, x.After, x.Expected, x.Starts[0].Kind)
		for _, h := range x.ids {
			id = binary.AppendUvarint(id, uint64(h))
		}
		known := index[string(id)]
		if known == nil {
			index[string(id)] = x
			all = append(all, x)
			continue
		}
		if x.Starts[0].Compare(known.Starts[0]) < 0 {
			known.Starts, x.Starts, known.Path, known.Uses = x.Starts, known.Starts, x.Path, x.Uses
		}
		known.Starts = append(known.Starts, x.Starts...)
		slices.SortFunc(known.Starts[1:], Holding.Compare)
		maps.Copy(known.Except, x.Except)
	}
	return all
}

// expectations say why something is reached that was not, and is no finding. The first one that holds counts.
var expectations = [...]struct {
	text  string
	holds func(s *groupSearch, id int32, from *start, l levels) bool
}{
	{"the workload's own account, or a new secret that it mounts", (*groupSearch).isOwn},
	{"new, and reached as all of its kind were before", (*groupSearch).isOneMore},
	{"an account or new secret that only a new or changed workload brings, and that gives nothing else", (*groupSearch).isBrought},
}

// ofControlPlane is why nothing but cluster-admin that is certain is a finding for some accounts.
const ofControlPlane = "by an account of the control plane, or one that could label nodes before"

// outcomeOf says of a holding that changes whether it is a finding.
func (s *groupSearch) outcomeOf(id int32, from *start, l levels) outcome {
	if l.after > l.before {
		for _, x := range expectations {
			if x.holds(s, id, from, l) {
				return outcome{l, x.text}
			}
		}
	}
	return outcome{levels: l}
}

// withAdmin says how a holding is reached, through cluster-admin too, and false if it changes with cluster-admin only.
func (s *groupSearch) withAdmin(k *deltaKey, id int32, o outcome) (outcome, bool) {
	l := o.levels
	if id != s.admin {
		o.levels = levels{max(l.before, k.admin.before), max(l.after, k.admin.after)}
	}
	widened := o.after > o.before && (id == s.admin || l.after > k.admin.after)
	narrowed := o.after < o.before && (id == s.admin || l.before > k.admin.before)
	if widened && k.controlPlane && (id != s.admin || o.after != Certain) {
		o.expected = ofControlPlane
	}
	return o, widened || narrowed
}

// kin is the holdings of one kind in one namespace, or in all for the empty one.
type kin struct{ kind, namespace string }

// findKin lists the holdings of the first state by their kind.
func (c *comparer) findKin() {
	c.kin = map[kin][]int32{}
	for id, h := range c.holdings {
		if slices.Contains([]string{Node, Namespace, Secret, ServiceAccount}, h.Kind) && c.existed(int32(id)) {
			c.kin[kin{kind: h.Kind}] = append(c.kin[kin{kind: h.Kind}], int32(id))
			if h.Namespace != "" {
				c.kin[kin{h.Kind, h.Namespace}] = append(c.kin[kin{h.Kind, h.Namespace}], int32(id))
			}
		}
	}
}

// existed reports whether the first state has a holding.
func (c *comparer) existed(id int32) bool { return len(c.before.vertices[id]) > 0 }

// isOneMore reports whether a holding is new, and a node or service account reached all of its kind before: in
// its namespace or, for kinds without namespaces, in the cluster.
func (s *groupSearch) isOneMore(id int32, from *start, l levels) bool {
	k := kin{s.holdings[id].Kind, s.holdings[id].Namespace}
	if len(s.kin[k]) == 0 {
		k.namespace = ""
	}
	if s.existed(id) || len(s.kin[k]) == 0 || l.before != No || len(from.before) == 0 || isWorkload(from.holding) {
		return false
	}
	least, known := s.least[k]
	if !known {
		least = Certain
		for _, other := range s.kin[k] {
			if !slices.Contains(from.self, other) {
				least = min(least, s.before.level(other))
			}
		}
		s.least[k] = least
	}
	return least >= l.after
}

// isOwn reports whether the template of a workload names a holding that it may have: its account, whose rights count by
// themselves, or a secret that comes with it.
func (s *groupSearch) isOwn(id int32, from *start, _ levels) bool {
	h := s.holdings[id]
	return isWorkload(from.holding) && slices.ContainsFunc(from.after, func(v vertex) bool {
		p := s.comparer.after.podOf(v)
		isAccount := h.Kind == ServiceAccount && h.Name == p.ServiceAccount && len(p.Audiences) > 0
		isSecret := h.Kind == Secret && !s.existed(id) && slices.Contains(p.Secrets, h.Name)
		return p.Namespace == h.Namespace && (isAccount || isSecret)
	})
}

// findControlPlane finds the accounts of the controllers of kube-controller-manager, and the rights to label nodes.
func (c *comparer) findControlPlane() {
	c.controllers = map[inventory.Name]bool{}
	for _, b := range c.before.bindings {
		if b.Binding.Kind != "ClusterRoleBinding" || !strings.HasPrefix(b.Role.Name, "system:controller:") {
			continue
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "kube-system" {
				c.controllers[inventory.Name{Namespace: s.Namespace, Name: s.Name}] = true
			}
		}
	}
	for v, k := range c.before.keys {
		if k.kind == isRight && k.name == "" && (right(k.variant) == changeNodes || right(k.variant) == changeNodeStatus) {
			c.labels = append(c.labels, vertex(v))
		}
	}
}

// isControlPlane reports whether the control plane runs with an account, or it could label all nodes before and so
// brings each pod to a node. The start is the last one of the search.
func (s *groupSearch) isControlPlane(from *start) bool {
	h := from.holding
	return h.Kind == ServiceAccount && len(from.before) > 0 &&
		(s.controllers[inventory.Name{Namespace: h.Namespace, Name: h.Name}] || slices.ContainsFunc(s.labels, s.before.certain.Has))
}
