package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
)

func takeSnapshot(t *testing.T, s *State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteSnapshot(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decompressAll(t *testing.T, compressed []byte) string {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fullCluster serves an object of each kind with all fields set, and more pods.
func fullCluster(t *testing.T) *stubServer {
	s := newStub(t)
	for k := range kindCount {
		s.set(k.describe().resource, filler{}.filled(k))
	}
	for i := range 20 {
		s.set("pods", boundPod(fmt.Sprintf("ns-%d", i%3), fmt.Sprintf("pod-%d", i), fmt.Sprintf("worker-%d", i%4), "pull"))
	}
	s.setAllowed("list resourceslices", false)
	return s
}

// A state that is read from a snapshot gives the same answers, and the same snapshot.
func TestSnapshotRoundTrip(t *testing.T) {
	state := list(t, fullCluster(t), LiveOptions{Retain: true})
	first := takeSnapshot(t, state)
	again := mustLoad(t, "a.snapshot", string(first))
	if got, want := answers(again), answers(state); got != want {
		t.Errorf("answers from the snapshot\n%s\nanswers from the cluster\n%s", got, want)
	}
	if !slices.EqualFunc(again.Resources, state.Resources, func(a, b APIResource) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("resources are %v, want %v", again.Resources, state.Resources)
	}
	if second := takeSnapshot(t, again); !bytes.Equal(first, second) {
		t.Errorf("the snapshot of a snapshot differs:\n%s\n%s", decompressAll(t, first), decompressAll(t, second))
	}
}

// The same state gives the same bytes, for any order of its objects.
func TestSnapshotIsDeterministic(t *testing.T) {
	var docs []string
	for i := range 30 {
		docs = append(docs,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d","namespace":"n%d"},"spec":{"nodeName":"w"}}`, i, i%3))
		docs = append(docs,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"w%d","labels":{"a":"1","b":"2","c":"3"}}}`, i))
	}
	first := takeSnapshot(t, mustLoad(t, "a.json", strings.Join(docs, "\n")))
	slices.Reverse(docs)
	replaced := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p0","namespace":"n0"},"spec":{"nodeName":"an earlier one"}}`
	docs = append([]string{replaced}, docs...)
	if second := takeSnapshot(t, mustLoad(t, "a.json", strings.Join(docs, "\n"))); !bytes.Equal(first, second) {
		t.Errorf("snapshots differ:\n%s\n%s", decompressAll(t, first), decompressAll(t, second))
	}
}

func TestSnapshotFormat(t *testing.T) {
	state := mustLoad(t, "a.yaml", read(t, "testdata/forms/shop.yaml"))
	state.markMissing(kindResourceSlice, "not allowed")
	got := decompressAll(t, takeSnapshot(t, state))
	golden := "testdata/snapshot.golden"
	if update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, golden); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A snapshot holds no secret and no unneeded data: each string of these objects that
// must not be in it contains the word SENTINEL.
func TestSnapshotHoldsNothingSecret(t *testing.T) {
	text := decompressAll(t, takeSnapshot(t, mustLoad(t, "nasty.yaml", read(t, "testdata/nasty.yaml"))))
	if i := strings.Index(text, "SENTINEL"); i >= 0 {
		t.Errorf("the snapshot contains %s", text[max(0, i-100):min(len(text), i+100)])
	}
	for _, kept := range []string{
		`"needed-secret"`, `"needed-configmap"`, `"needed-claim"`, `"needed-audience"`, `kubernetes.io/config.mirror`,
	} {
		if !strings.Contains(text, kept) {
			t.Errorf("the snapshot lacks %s", kept)
		}
	}
}

func TestSnapshotFromACluster(t *testing.T) {
	s := fullCluster(t)
	text := decompressAll(t, takeSnapshot(t, list(t, s, LiveOptions{Retain: true})))
	for _, secret := range []string{"sentinel", "«annotation»", "managedFields", "env[].value»", "env[].name»"} {
		if strings.Contains(text, secret) {
			t.Errorf("the snapshot contains %q", secret)
		}
	}
}

// Aggregated cluster roles are computed for manifests, but not for a cluster, where
// the controller computes them.
func TestAggregatedClusterRoles(t *testing.T) {
	const manifests = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {part: "yes"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part, labels: {part: "yes"}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jo}]
`
	allows := func(s *State) bool {
		return s.RBAC.Evaluate(&access.Request{
			User: "jo", Verb: "get", Resource: "pods", Name: "p", Namespace: "n", ResourceRequest: true,
		}).Allowed
	}
	files := mustLoad(t, "a.yaml", manifests)
	if !allows(files) {
		t.Error("manifests: the aggregated role is not filled")
	}
	if !allows(mustLoad(t, "a.snapshot", string(takeSnapshot(t, files)))) {
		t.Error("snapshot of manifests: the aggregated role is not filled")
	}
	stub := newStub(t)
	stub.set("clusterroles", &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"part": "yes"}}},
		},
	})
	stub.set("clusterroles", &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"part": "yes"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	})
	stub.set("clusterrolebindings", &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "jo"}},
	})
	live := list(t, stub, LiveOptions{Retain: true})
	if allows(live) {
		t.Error("cluster: the aggregated role is filled, although the controller has not done it")
	}
	taken := takeSnapshot(t, live)
	if allows(mustLoad(t, "a.snapshot", string(taken))) {
		t.Error("snapshot of a cluster: the aggregated role is filled")
	}
	path := filepath.Join(t.TempDir(), "a.snapshot")
	if err := os.WriteFile(path, taken, 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := LoadFiles(t.Context(), []string{path, "-"}, FileOptions{Stdin: strings.NewReader(manifests)})
	if err != nil {
		t.Fatal(err)
	}
	if !allows(both) {
		t.Error("snapshot and manifests: the aggregated role is not filled")
	}
}

func TestSnapshotNeedsRetainedObjects(t *testing.T) {
	s, err := LoadFiles(t.Context(), []string{"testdata/forms/shop.yaml"}, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteSnapshot(io.Discard, s); err == nil {
		t.Error("a snapshot without objects was written")
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSnapshotReportsWriteErrors(t *testing.T) {
	s := mustLoad(t, "a.yaml", read(t, "testdata/forms/shop.yaml"))
	err := WriteSnapshot(fullDisk{}, s)
	if err == nil || err.Error() != "write snapshot: no space left" {
		t.Errorf("error is %v", err)
	}
}

// The versions and missing resources of several snapshots are merged.
func TestSeveralSnapshots(t *testing.T) {
	header := func(version, missing string) string {
		return fmt.Sprintf(`{"apiVersion":"snapshot.node-authorizer.io/v1alpha1","kind":"Snapshot","kubernetesVersion":%q,`+
			`"cluster":true,"missing":[{"resource":%q,"reason":"r"}]}`,
			version, missing)
	}
	s := mustLoad(t, "a.json", header("v1.33.1", "pods")+header("v1.34.0", "nodes"))
	if s.Version.String() != "1.34" || len(s.Missing()) != 2 {
		t.Errorf("version %s, missing %v", s.Version, s.Missing())
	}
	if w := s.Warnings(); len(w) != 1 ||
		!strings.Contains(w[0], "snapshot is of Kubernetes v1.34.0, another was of v1.33.1; the last one counts") {
		t.Errorf("warnings are %q", w)
	}
}
