package attackpaths_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/testing/randomcluster"
)

// change is how a start reaches a holding in two states.
type change struct{ start, holding attackpaths.Holding }

type twoLevels struct{ before, after attackpaths.Certainty }

// changed takes some objects away, and adds or replaces some.
func (rc *randomCluster) edited(objects []runtime.Object, other *randomcluster.Cluster) []runtime.Object {
	left := slices.DeleteFunc(slices.Clone(objects), func(runtime.Object) bool { return rc.chance(8) })
	for _, o := range other.Objects {
		if !rc.chance(5) {
			continue
		}
		same := func(p runtime.Object) bool {
			return reflect.TypeOf(o) == reflect.TypeOf(p) && o.(metav1.Object).GetName() == p.(metav1.Object).GetName() &&
				o.(metav1.Object).GetNamespace() == p.(metav1.Object).GetNamespace()
		}
		left = append(slices.DeleteFunc(left, same), o)
	}
	return left
}

// naiveComparison puts each start to both graphs and compares the answers.
func naiveComparison(t *testing.T, before, after *attackpaths.Graph, b, a *naive) map[change]twoLevels {
	t.Helper()
	all := map[change]twoLevels{}
	starts := startsOf(b)
	maps.Copy(starts, startsOf(a))
	for start := range starts {
		x, y := levelsFrom(before, b, start), levelsFrom(after, a, start)
		holdings := maps.Clone(x)
		maps.Copy(holdings, y)
		admin := attackpaths.Holding{Kind: attackpaths.ClusterAdmin}
		for h := range holdings {
			owner := twoLevels{x[admin], y[admin]}
			l := twoLevels{max(x[h], owner.before), max(y[h], owner.after)}
			if node, ok := strings.CutPrefix(h.Name, "system:node:"); ok && h.Kind == attackpaths.User {
				n := attackpaths.Holding{Kind: attackpaths.Node, Name: node}
				owner = twoLevels{max(owner.before, x[n]), max(owner.after, y[n])}
				if n == start {
					continue
				}
				l = twoLevels{max(l.before, owner.before), max(l.after, owner.after)}
			}
			isPod := h.Kind == attackpaths.Pod && !(hasPod(b, h) && hasPod(a, h))
			widened := l.after > l.before && (h == admin || y[h] > owner.after)
			narrowed := l.after < l.before && (h == admin || x[h] > owner.before)
			if !isPod && (widened || narrowed) {
				all[change{start, h}] = l
			}
		}
	}
	return all
}

// startsOf are the nodes and service accounts that exist.
func startsOf(n *naive) map[attackpaths.Holding]bool {
	starts := map[attackpaths.Holding]bool{}
	for _, node := range n.nodes {
		starts[attackpaths.Holding{Kind: attackpaths.Node, Name: node.Name}] = true
	}
	for s := range n.accounts {
		starts[attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: s.Namespace, Name: s.Name}] = true
	}
	return starts
}

func hasPod(n *naive, h attackpaths.Holding) bool {
	for _, p := range n.pods {
		if p.Namespace == h.Namespace && p.Name.Name == h.Name {
			return true
		}
	}
	return false
}

// levelsFrom is empty for a start that the state does not have.
func levelsFrom(g *attackpaths.Graph, n *naive, start attackpaths.Holding) map[attackpaths.Holding]attackpaths.Certainty {
	all := map[attackpaths.Holding]attackpaths.Certainty{}
	result, err := g.From(start)
	if err != nil || !startsOf(n)[start] {
		return all
	}
	for _, r := range result.Reached {
		all[r.Holding] = r.Certainty
	}
	return all
}

// ofNodesAndAccounts are all differences, but for those of workloads.
func ofNodesAndAccounts(c attackpaths.Comparison) []attackpaths.Difference {
	return slices.DeleteFunc(slices.Concat(c.Widened, c.Expected, c.Narrowed), func(d attackpaths.Difference) bool {
		return d.Starts[0].Kind != attackpaths.Node && d.Starts[0].Kind != attackpaths.ServiceAccount
	})
}

// expand lists each start and holding of a comparison once.
func expand(t *testing.T, c attackpaths.Comparison) map[change]twoLevels {
	t.Helper()
	all := map[change]twoLevels{}
	for _, d := range ofNodesAndAccounts(c) {
		for _, s := range d.Starts {
			for _, h := range d.Reached {
				credential := attackpaths.Holding{Kind: attackpaths.User, Name: "system:node:" + s.Name}
				if h == s || s.Kind == attackpaths.Node && h == credential {
					continue
				}
				if _, twice := all[change{s, h}]; twice && !slices.Contains(d.Except[s], h) {
					t.Errorf("%s reaches %s in two rows", s, h)
				}
				if !slices.Contains(d.Except[s], h) {
					all[change{s, h}] = twoLevels{d.Before, d.After}
				}
			}
		}
	}
	return all
}

func TestCompareAgreesWithEachStart(t *testing.T) {
	rows := 0
	eachCluster(t, 300, func(t *testing.T, rc *randomCluster) {
		objects := rc.edited(rc.Objects, randomcluster.New(rc.Uint64()))
		x, y := rc.cluster(t, rc.Objects), rc.cluster(t, objects)
		before, after := graphOf(t, x), graphOf(t, y)
		got := attackpaths.Compare(before, after, attackpaths.CompareOptions{})
		want := naiveComparison(t, before, after, newNaive(x), newNaive(y))
		found := expand(t, got)
		for c, l := range want {
			if found[c] != l {
				t.Errorf("from %s to %s: got %v, want %v", c.start, c.holding, found[c], l)
			}
		}
		for c, l := range found {
			if _, ok := want[c]; !ok {
				t.Errorf("from %s to %s: got %v, want no change", c.start, c.holding, l)
			}
		}
		checkPaths(t, before, after, got)
		checkBrought(t, before, after, newNaive(x), got)
		rows += len(want)
		if t.Failed() {
			t.Logf("after:\n%s", (&randomcluster.Cluster{Objects: objects}).YAML())
		}
	})
	if rows == 0 {
		t.Error("nothing changed in any cluster")
	}
}

// checkPaths requires that the path of a row is one that From gives for its first start and holding.
func checkPaths(t *testing.T, before, after *attackpaths.Graph, c attackpaths.Comparison) {
	t.Helper()
	for _, d := range ofNodesAndAccounts(c) {
		g, level := after, d.After
		if !d.Widened() {
			g, level = before, d.Before
		}
		at := slices.IndexFunc(d.Reached, func(h attackpaths.Holding) bool {
			return h != d.Starts[0] && h.Name != "system:node:"+d.Starts[0].Name && !slices.Contains(d.Except[d.Starts[0]], h)
		})
		if at < 0 {
			t.Errorf("nothing changes for %s", d.Starts[0])
			continue
		}
		to := d.Path[len(d.Path)-1].To
		result, err := g.From(d.Starts[0])
		if err != nil {
			t.Error(err)
			continue
		}
		for _, r := range result.Reached {
			if r.Holding == to && (r.Certainty != level || len(r.Path) != len(d.Path) || len(d.Path) == 0) {
				t.Errorf("from %s to %s the path of the row %s is\n%swant %s\n%s",
					d.Starts[0], to, level, pathText(d.Path), r.Certainty, pathText(r.Path))
			}
		}
	}
}

// checkBrought requires that what only a workload brings is an account or secret, and leads to nothing that its start did not
// reach before.
func checkBrought(t *testing.T, before, after *attackpaths.Graph, b *naive, c attackpaths.Comparison) {
	t.Helper()
	for _, d := range c.Expected {
		if !strings.Contains(d.Expected, "only a new or changed workload brings") {
			continue
		}
		for _, start := range d.Starts {
			reached := levelsFrom(before, b, start)
			for _, h := range d.Reached {
				if slices.Contains(d.Except[start], h) || h == start {
					continue
				}
				result, err := after.From(h)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range result.Reached {
					if reached[r.Holding] == attackpaths.No && r.Holding != start {
						t.Errorf("%s comes with a workload to %s, and leads to %s", h, start, r.Holding)
					}
				}
			}
		}
	}
}

func TestCompareOfTheSameClusterIsEmpty(t *testing.T) {
	eachCluster(t, 100, func(t *testing.T, rc *randomCluster) {
		shuffled := slices.Clone(rc.Objects)
		rc.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got := attackpaths.Compare(graphOf(t, rc.cluster(t, rc.Objects)), graphOf(t, rc.cluster(t, shuffled)), attackpaths.CompareOptions{})
		if len(got.Widened)+len(got.Expected)+len(got.Narrowed) > 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestCompareBackwardsIsTheOpposite(t *testing.T) {
	eachCluster(t, 100, func(t *testing.T, rc *randomCluster) {
		objects := rc.edited(rc.Objects, randomcluster.New(rc.Uint64()))
		before, after := graphOf(t, rc.cluster(t, rc.Objects)), graphOf(t, rc.cluster(t, objects))
		forth := expand(t, attackpaths.Compare(before, after, attackpaths.CompareOptions{}))
		back := expand(t, attackpaths.Compare(after, before, attackpaths.CompareOptions{}))
		for c, l := range back {
			back[c] = twoLevels{l.after, l.before}
		}
		if !maps.Equal(forth, back) {
			t.Errorf("forth %v\nback %v", forth, back)
		}
	})
}

// Nodes that widen alike are one row, with the binding that makes it possible.
func TestCompareGroupsNodes(t *testing.T) {
	c := newCluster()
	for _, node := range []string{"n1", "n2", "n3"} {
		c.Inventory.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	}
	parse(t, c, `
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{verbs: [get], apiGroups: [""], resources: [secrets]}]
`)
	before := graphOf(t, c)
	parse(t, c, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes-read}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: Group, name: "system:nodes", apiGroup: rbac.authorization.k8s.io}]
`)
	binding := attackpaths.Holding{Kind: "ClusterRoleBinding", Name: "nodes-read"}
	got := attackpaths.Compare(before, graphOf(t, c), attackpaths.CompareOptions{
		Changed: func(h attackpaths.Holding) bool { return h == binding },
	})
	if len(got.Widened) != 1 || len(got.Narrowed) != 0 {
		t.Fatalf("got %+v", got)
	}
	row := got.Widened[0]
	if len(row.Starts) != 3 || len(row.Reached) != 1 || row.Reached[0].Name != "db" || row.After != attackpaths.Certain {
		t.Errorf("row = %+v", row)
	}
	if want := []attackpaths.Use{{Step: 1, Object: binding}}; !slices.Equal(row.Uses, want) {
		t.Errorf("uses = %v, want %v", row.Uses, want)
	}
}
