package attackpaths_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// ATTACKPATHS=full runs each test on all of its random clusters, otherwise on a tenth of them.
// ATTACKPATHS_CLUSTERS is another number of clusters for each test, ATTACKPATHS_SEED the seed of the
// first one. A failure prints the seed of its cluster.
const (
	modeVariable     = "ATTACKPATHS"
	clustersVariable = "ATTACKPATHS_CLUSTERS"
	seedVariable     = "ATTACKPATHS_SEED"
)

// number reads a variable of the environment.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// eachCluster runs a test on random clusters. The given number is that of a full run.
func eachCluster(t *testing.T, clusters int, do func(t *testing.T, rc *randomCluster)) {
	t.Helper()
	switch mode := os.Getenv(modeVariable); {
	case mode != "" && mode != "full":
		t.Fatalf("%s=%q: want full", modeVariable, mode)
	case testing.Short() || mode == "":
		clusters /= 10
	}
	first := number(t, seedVariable, 1)
	for seed := first; seed < first+number(t, clustersVariable, clusters); seed++ {
		rc := newRandomCluster(uint64(seed))
		do(t, rc)
		if t.Failed() {
			t.Fatalf("seed %d (%s=%d %s=1 repeats this): the cluster with Kubernetes %s, EKS %v is\n%s\nand has the custom techniques %+v",
				seed, seedVariable, seed, clustersVariable, rc.Features.Minor(), rc.EKS, rc.YAML(), rc.custom)
		}
	}
}

func graphOf(t *testing.T, c *attackpaths.Cluster) *attackpaths.Graph {
	t.Helper()
	g, err := attackpaths.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestFromAgreesWithExhaustiveSearch(t *testing.T) {
	codes, modes := map[attackpaths.Code]int{}, map[string]int{}
	eachCluster(t, 2100, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		n, g := newNaive(c), graphOf(t, c)
		for _, start := range rc.starts(n) {
			result, err := g.From(start)
			if err != nil {
				t.Errorf("from %s: %v", start, err)
				continue
			}
			costs, err := g.Costs(start)
			if err != nil {
				t.Fatal(err)
			}
			want, ties := n.from(start)
			compareResult(t, result, costs, want, ties)
			for _, r := range result.Reached {
				for _, s := range r.Path {
					codes[s.Technique]++
					if _, mode, ok := strings.Cut(s.Because, " in the mode "); ok {
						modes[strings.Fields(mode)[0]]++
					}
				}
			}
		}
	})
	if t.Logf("modes of impersonation: %v", modes); len(modes) != 4 && !testing.Short() && os.Getenv(clustersVariable) == "" {
		t.Errorf("random clusters have the modes %v of impersonation, want 4", modes)
	}
	all := append(attackpaths.Techniques(), attackpaths.Technique{Code: randomCustom + "0"})
	for _, technique := range all {
		t.Logf("%8d %s", codes[technique.Code], technique.Code)
		if codes[technique.Code] == 0 && !testing.Short() && os.Getenv(clustersVariable) == "" {
			t.Errorf("no random cluster has a step by %s", technique.Code)
		}
	}
}

// compareResult compares what is reached with what the exhaustive search finds.
func compareResult(
	t *testing.T, result attackpaths.Result, costs map[attackpaths.Holding]int,
	want map[attackpaths.Holding]found, ties map[attackpaths.Holding]bool,
) {
	t.Helper()
	if got := want[attackpaths.Holding{Kind: attackpaths.ClusterAdmin}].certainty; got != result.ClusterAdmin {
		t.Errorf("from %s: cluster-admin is %s, want %s", result.Start, result.ClusterAdmin, got)
	}
	seen := map[attackpaths.Holding]bool{}
	for _, r := range result.Reached {
		seen[r.Holding] = true
		if ties[r.Holding] {
			continue
		}
		if got := want[r.Holding]; got.certainty != r.Certainty {
			t.Errorf("from %s: %s is %s, want %s\n%s", result.Start, r.Holding, r.Certainty, got.certainty, pathText(r.Path))
		} else if costs[r.Holding] > got.cost {
			t.Errorf("from %s: %s costs %d, want at most %d\n%s", result.Start, r.Holding, costs[r.Holding], got.cost, pathText(r.Path))
		}
	}
	for h, f := range want {
		if !seen[h] && !ties[h] {
			t.Errorf("from %s: %s is not reached, want %s with %d steps", result.Start, h, f.certainty, f.cost)
		}
	}
}

func pathText(path []attackpaths.Step) string {
	var all strings.Builder
	for _, s := range path {
		fmt.Fprintf(&all, "\t%s: %s -> %s because %s by %v (%s %s)\n",
			s.Technique, s.From, s.To, s.Because, s.GrantedBy, s.Certainty, s.DependsOn)
	}
	return all.String()
}

func from(t *testing.T, g *attackpaths.Graph, start attackpaths.Holding) attackpaths.Result {
	t.Helper()
	result, err := g.From(start)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestResultsDoNotDependOnTheOrderOfObjects(t *testing.T) {
	eachCluster(t, 100, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		g := graphOf(t, c)
		shuffled := slices.Clone(rc.Objects)
		rc.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		other := graphOf(t, rc.cluster(t, shuffled))
		for _, start := range rc.starts(newNaive(c)) {
			a, b := from(t, g, start), from(t, other, start)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("from %s: %+v\nin another order\n%+v", start, a, b)
			}
			if again := from(t, g, start); !reflect.DeepEqual(a, again) {
				t.Errorf("from %s: %+v\nthe second time\n%+v", start, a, again)
			}
		}
		if a, b := g.AllNodes(), other.AllNodes(); !reflect.DeepEqual(a, b) {
			t.Errorf("all nodes: %+v\nin another order\n%+v", a, b)
		}
	})
}

// TestMoreRightsReachMore adds a rule or a subject. Read in reverse, it removes one.
func TestMoreRightsReachMore(t *testing.T) {
	eachCluster(t, 150, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		few := graphOf(t, c)
		starts := rc.starts(newNaive(c))
		more := slices.Clone(rc.Objects)
		change := rc.IntN(len(more))
		switch o := more[change].(type) {
		case *rbacv1.Role:
			o = o.DeepCopy()
			o.Rules = append(o.Rules, rc.Rules()...)
			more[change] = o
		case *rbacv1.ClusterRole:
			o = o.DeepCopy()
			o.Rules = append(o.Rules, rc.Rules()...)
			more[change] = o
		case *rbacv1.RoleBinding:
			o = o.DeepCopy()
			o.Subjects = append(o.Subjects, rc.Subject())
			more[change] = o
		default:
			b := rc.Binding()
			b.(metav1.Object).SetName("new")
			more = append(more, b)
		}
		many := graphOf(t, rc.cluster(t, more))
		for _, start := range starts {
			before, after := certainties(from(t, few, start)), certainties(from(t, many, start))
			for h, certainty := range before {
				// The result does not list what cluster-admin owns, nor the credential of a node that it lists.
				now := max(after[h], after[attackpaths.Holding{Kind: attackpaths.ClusterAdmin}])
				if name, ok := strings.CutPrefix(h.Name, "system:node:"); ok {
					now = max(now, after[attackpaths.Holding{Kind: attackpaths.Node, Name: name}])
				}
				if now < certainty {
					t.Errorf("from %s: %s was %s and is %s with %T %v", start, h, certainty, now, more[len(more)-1], more[change])
				}
			}
		}
	})
}

func certainties(r attackpaths.Result) map[attackpaths.Holding]attackpaths.Certainty {
	all := map[attackpaths.Holding]attackpaths.Certainty{r.Start: attackpaths.Certain}
	for _, x := range r.Reached {
		all[x.Holding] = x.Certainty
	}
	return all
}

func TestAllNodesAgreesWithFrom(t *testing.T) {
	eachCluster(t, 300, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		g := graphOf(t, c)
		results := map[string]attackpaths.Result{}
		class := map[string]int{}
		controlPlane := map[string]bool{}
		for i, c := range g.AllNodes() {
			for _, node := range c.Nodes {
				r := from(t, g, attackpaths.Holding{Kind: attackpaths.Node, Name: node})
				results[node], class[node], controlPlane[node] = r, i, c.ControlPlane
				if r.ClusterAdmin != c.ClusterAdmin {
					t.Errorf("node %s: cluster-admin is %s, and %s among all nodes", node, r.ClusterAdmin, c.ClusterAdmin)
				}
				if want := startsInControlPlane(r); c.ControlPlane != want {
					t.Errorf("node %s: runs the control plane is %v, want %v", node, c.ControlPlane, want)
				}
				if want := countsOf(r); node == c.Nodes[0] && !slices.Equal(c.Counts, want) {
					t.Errorf("node %s, the first of %v: cluster-admin is %s, counts are %v, want %v",
						node, c.Nodes, c.ClusterAdmin, c.Counts, want)
				}
			}
		}
		for a, reachedA := range results {
			for b, reachedB := range results {
				same := sameReach(reachedA, reachedB) && controlPlane[a] == controlPlane[b]
				if same != (class[a] == class[b]) {
					t.Errorf("nodes %s and %s: reach the same: %v, are in one class: %v", a, b, same, class[a] == class[b])
				}
			}
		}
	})
}

// startsInControlPlane reports whether the shortest path of a node to cluster-admin is that it runs
// the control plane, which is one step.
func startsInControlPlane(r attackpaths.Result) bool {
	return slices.ContainsFunc(r.Reached, func(x attackpaths.Reached) bool {
		return x.Kind == attackpaths.ClusterAdmin && x.Certainty == attackpaths.Certain && len(x.Path) == 1 &&
			x.Path[0].Technique == attackpaths.ControlPlaneNode
	})
}

// counted returns the holdings that AllNodes counts. It leaves out what cluster-admin owns.
func counted(r attackpaths.Result) map[attackpaths.Holding]attackpaths.Certainty {
	all := map[attackpaths.Holding]attackpaths.Certainty{}
	for _, x := range r.Reached {
		credential := x.Kind == attackpaths.User && strings.HasPrefix(x.Name, "system:node:")
		if x.Kind != attackpaths.ClusterAdmin && x.Kind != attackpaths.Pod && !credential && x.Certainty > r.ClusterAdmin {
			all[x.Holding] = x.Certainty
		}
	}
	return all
}

func countsOf(r attackpaths.Result) []attackpaths.Count {
	var all []attackpaths.Count
	for _, kind := range []string{
		attackpaths.Node, attackpaths.ServiceAccount, attackpaths.User, attackpaths.Group, attackpaths.Namespace, attackpaths.Secret,
	} {
		c := attackpaths.Count{Kind: kind}
		for h, certainty := range counted(r) {
			switch {
			case h.Kind != kind:
			case certainty == attackpaths.Certain:
				c.Certain++
			default:
				c.Possible++
			}
		}
		if c.Certain+c.Possible > 0 {
			all = append(all, c)
		}
	}
	return all
}

// sameReach reports whether two nodes reach the same, except each other.
func sameReach(a, b attackpaths.Result) bool {
	ofA, ofB := counted(a), counted(b)
	if ofA[b.Start] != ofB[a.Start] || a.ClusterAdmin != b.ClusterAdmin {
		return false
	}
	delete(ofA, b.Start)
	delete(ofB, a.Start)
	return reflect.DeepEqual(ofA, ofB)
}
