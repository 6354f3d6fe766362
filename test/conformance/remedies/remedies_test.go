package remedies

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// refusals is how many random refusals are tested: REMEDIES_REFUSALS, or this. Each cluster has a
// seed; REMEDIES_SEED is the seed of the first cluster, and the next cluster has the next seed.
const refusals = 10_000

// atMost is how many times as many refusals are tested, at most, until there was one of each code.
const atMost = 5

// perWorld is how many refusals of one cluster are tested.
const perWorld = 100

// found are seeds of clusters in which a remedy, or this test, was wrong once.
var found = []uint64{3793, 5329, 9231, 16341818469097610602}

// tally counts the refusals of each authorizer by code, with and without changes.
type tally struct{ changed, none map[string]int }

func (c *tally) add(by string, code verdict.Code, r verdict.Remedy) {
	if r.None == "" {
		c.changed[by+" "+string(code)]++
	} else {
		c.none[by+" "+string(code)]++
	}
}

func (c *tally) total() (n int) {
	for _, m := range []map[string]int{c.changed, c.none} {
		for _, count := range m {
			n += count
		}
	}
	return n
}

// TestRemediesChangeTheAnswer applies the remedies of random refusals. Either the answer is an
// allow then, or the remedy says that there is none, and no right and no feature gate refutes it.
func TestRemediesChangeTheAnswer(t *testing.T) {
	want, first := fromEnv(t, "REMEDIES_REFUSALS", refusals), fromEnv(t, "REMEDIES_SEED", 0)
	t.Logf("REMEDIES_SEED=%d", first)
	count := &tally{map[string]int{}, map[string]int{}}
	codes := refusalCodes(t)
	tested := func(code string) bool { return count.changed[code]+count.none[code] > 0 }
	allTested := func() bool { return !slices.ContainsFunc(codes, func(code string) bool { return !tested(code) }) }
	for _, seed := range found {
		examine(t, seed, count)
	}
	for seed := first; !t.Failed(); seed++ {
		n := uint64(count.total())
		if n >= want && (allTested() || n >= atMost*want) {
			break
		}
		examine(t, seed, count)
	}
	for _, what := range []struct {
		says   string
		counts map[string]int
	}{{"changes", count.changed}, {"none", count.none}} {
		for _, code := range slices.Sorted(maps.Keys(what.counts)) {
			t.Logf("%-8s %6d %s", what.says, what.counts[code], code)
		}
	}
	for _, code := range codes {
		if !tested(code) {
			t.Errorf("no refusal of %s was tested", code)
		}
	}
}

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// examine tests the refusals of one cluster: questions to the authorizers about objects, and writes.
func examine(t *testing.T, seed uint64, count *tally) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	features := randomFeatures(t, r)
	if seed%3 == 0 {
		w := newWorld(features)
		cluster := generate.New(seed, generate.Options{
			Nodes: 4, Namespaces: 3, Names: 6, Pods: 25, PersistentVolumes: 8, VolumeAttachments: 5, ResourceSlices: 5,
			PodCertificateRequests: 5, SharedPercent: 20,
		})
		w.addCluster(t, cluster)
		e, asker := w.load(t), generate.NewAsker(seed, cluster)
		for range perWorld {
			q := asker.Next()
			testCase{t, seed, q.String(), w, e, count}.product(newQuestion(&q))
		}
		return
	}
	w := newWorld(features)
	state := generate.NewState(seed)
	w.addState(t, state)
	e, writer := w.load(t), generate.NewWriter(seed, state)
	for range perWorld {
		write := writer.Next()
		if write.Undefaulted {
			continue // has what JSON cannot hold
		}
		c := testCase{t, seed, write.String(), w, e, count}
		c.product(newWrite(write))
		c.admission(newWrite(write))
	}
}

// randomFeatures draws a version, and mostly its defaults.
func randomFeatures(t *testing.T, r *rand.Rand) kubeversion.Features {
	t.Helper()
	minors := kubeversion.Minors()
	f := kubeversion.For(minors[r.IntN(len(minors))])
	for _, gate := range kubeversion.Gates() {
		if f.Settable(gate) && r.IntN(3) == 0 {
			with, err := f.With(gate, r.IntN(2) == 0)
			if err != nil {
				t.Fatal(err)
			}
			f = with
		}
	}
	return f
}

func (w *world) addCluster(t *testing.T, c *generate.Cluster) {
	t.Helper()
	for _, name := range c.Nodes {
		w.add(t, "v1", "Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}})
	}
	addAll(t, w, "v1", "Pod", c.Pods)
	addAll(t, w, "v1", "PersistentVolume", c.PersistentVolumes)
	addAll(t, w, "storage.k8s.io/v1", "VolumeAttachment", c.VolumeAttachments)
	addAll(t, w, "resource.k8s.io/v1", "ResourceSlice", c.ResourceSlices)
	addAll(t, w, "certificates.k8s.io/v1", "PodCertificateRequest", c.PodCertificateRequests)
}

func (w *world) addState(t *testing.T, s *generate.State) {
	t.Helper()
	addAll(t, w, "v1", "Node", s.Nodes)
	addAll(t, w, "v1", "Pod", s.Pods)
	addAll(t, w, "v1", "ServiceAccount", s.ServiceAccounts)
	addAll(t, w, "v1", "PersistentVolumeClaim", s.PersistentVolumeClaims)
	addAll(t, w, "v1", "PersistentVolume", s.PersistentVolumes)
	addAll(t, w, "storage.k8s.io/v1", "CSIDriver", s.CSIDrivers)
	w.addPolicy(t, s.Policy)
}

// testCase is one request in one cluster.
type testCase struct {
	*testing.T
	seed  uint64
	what  string
	world *world
	e     *evaluate.Evaluator
	count *tally
}

func (c testCase) fail(r verdict.Remedy, format string, args ...any) {
	c.Helper()
	c.Errorf("seed %d, Kubernetes %s: %s\n%s\nnone %q", c.seed, c.world.features.Minor(), c.what, fmt.Sprintf(format, args...), r.None)
	for _, change := range r.Changes {
		c.Logf("%s %s %s %s %s", change.Of, change.Op, change.Object, change.Path, change.Value)
	}
}

// product tests the remedy of a request that the authorizers or NodeRestriction refuse.
func (c testCase) product(r request) {
	c.Helper()
	by, code := refusedBy(c.T, c.e, r)
	if by == "" {
		return
	}
	result, err := c.e.Chain.Brief(c.Context(), &r.access)
	if err != nil {
		return // an error is no refusal
	}
	remedy := c.e.Remedy(c.Context(), result, &r.access, r.write)
	c.count.add(by, code, remedy)
	if remedy.None != "" {
		if len(remedy.Changes) > 0 {
			c.fail(remedy, "it has changes and says that there are none")
		}
		c.refuteProduct(r, remedy, code)
		return
	}
	c.changes(r, remedy, refusedBy)
}

// admission tests the remedy of a write that NodeRestriction refuses, for any answer of the authorizers.
func (c testCase) admission(r request) {
	c.Helper()
	answer := c.e.Restriction.Decide(c.Context(), &r.write.Request)
	if answer.Decision == verdict.Allow {
		return
	}
	remedy := c.e.Restriction.Remedy(c.Context(), &r.write.Request, r.write.Open)
	c.count.add("NodeRestriction", answer.Code, remedy)
	if remedy.None != "" {
		if len(remedy.Changes) > 0 {
			c.fail(remedy, "it has changes and says that there are none")
		}
		c.refuteAdmission(r, remedy)
		return
	}
	c.changes(r, remedy, refusedByRestriction)
}

// changes applies a remedy and asks again.
func (c testCase) changes(r request, remedy verdict.Remedy, refused refuser) {
	c.Helper()
	if len(remedy.Changes) == 0 {
		c.fail(remedy, "it has no changes, and does not say why")
		return
	}
	w, next, other, err := apply(c.T, c.world, r, remedy.Changes)
	if err != nil {
		c.fail(remedy, "it cannot be applied: %v", err)
		return
	}
	e := c.e
	if other {
		e = w.load(c.T)
	}
	if by, code := refused(c.T, e, next); by != "" {
		c.fail(remedy, "%s still refuses: %s", by, code)
	}
}

// refuser returns who refuses a request, and the code; empty if it is allowed.
type refuser func(*testing.T, *evaluate.Evaluator, request) (by string, code verdict.Code)

// refusedBy asks the authorizers, then NodeRestriction.
func refusedBy(t *testing.T, e *evaluate.Evaluator, r request) (by string, code verdict.Code) {
	t.Helper()
	if decision, _, _ := e.Chain.Decide(t.Context(), &r.access); decision != verdict.Allow {
		return "Node", e.Node.Decide(&r.access).Code
	}
	return refusedByRestriction(t, e, r)
}

func refusedByRestriction(t *testing.T, e *evaluate.Evaluator, r request) (by string, code verdict.Code) {
	t.Helper()
	if r.write == nil {
		return "", ""
	}
	if answer, _ := e.Restriction.Consider(t.Context(), &r.write.Request, r.write.Open); answer.Decision != verdict.Allow {
		return "NodeRestriction", answer.Code
	}
	return "", ""
}

// refusalCodes returns the codes that the packages declare for refusals, each after the name of
// its authorizer.
func refusalCodes(t *testing.T) []string {
	t.Helper()
	var codes []string
	for by, file := range map[string]string{"Node": "../../../nodeauthz/codes.go", "NodeRestriction": "../../../noderestriction/codes.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && !allows(spec.Names[0].Name, by) {
				codes = append(codes, by+" "+spec.Names[0].Name)
			}
			return true
		})
	}
	if len(codes) < 50 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	slices.Sort(codes)
	return codes
}

func allows(code, by string) bool {
	allowed := []verdict.Code{
		nodeauthz.PathToObject, nodeauthz.OwnName, nodeauthz.OwnFieldSelector, nodeauthz.GrantedToNodes,
		noderestriction.NotRestricted, noderestriction.RestrictionsMet,
	}
	return slices.Contains(allowed, verdict.Code(code)) || by == "NodeRestriction" && code == string(noderestriction.NotANode)
}
