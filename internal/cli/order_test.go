package cli

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// orderedCluster returns a cluster with many references to the same objects, one manifest
// each, and many bindings that allow the same requests.
func orderedCluster() (manifests []string) {
	add := func(format string, args ...any) { manifests = append(manifests, fmt.Sprintf(format, args...)) }
	for node := range 4 {
		add("{apiVersion: v1, kind: Node, metadata: {name: worker-%d}}", node)
	}
	for i := range 120 {
		add(`{apiVersion: v1, kind: Pod, metadata: {name: api-%d, namespace: %s}, spec: {nodeName: worker-%d, serviceAccountName: api,
  containers: [{name: c%d, image: i, env: [{name: A, valueFrom: {secretKeyRef: {name: db, key: k}}}]}],
  volumes: [{name: v%d, persistentVolumeClaim: {claimName: data-%d}}, {name: w, configMap: {name: all}}]}}`,
			i, []string{"shop", "bank"}[i%2], i%3, i%5, i%4, i%2)
		add(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-%d}, spec: {claimRef: {namespace: shop, name: data-%d},
  csi: {driver: d, volumeHandle: h, nodePublishSecretRef: {namespace: vault, name: key}}}}`, i, i%5)
	}
	for i := range 20 {
		add(
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: role-%d, labels: {a: "%d"}},`+
				` rules: [{apiGroups: [""], resources: [pods, services], verbs: [get, list]}]}`,
			i, i%2,
		)
		add(
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: binding-%d},`+
				` roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: role-%d},`+
				` subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ada}]}`,
			i, i,
		)
		add(
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding-%d, namespace: shop},`+
				` roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sum},`+
				` subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}]}`,
			i,
		)
	}
	add(
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: sum},` +
			` aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: "0"}}, {matchLabels: {a: "1"}}]}}`,
	)
	return manifests
}

// orderedReviews returns reviews of all objects for each user.
func orderedReviews() string {
	var b strings.Builder
	for _, user := range []string{
		`"user":"system:node:worker-0","groups":["system:nodes"]`, `"user":"system:node:worker-3","groups":["system:nodes"]`,
		`"user":"ada"`, `"user":"bob","groups":["people"]`,
	} {
		for _, object := range []string{
			`"namespace":"shop","verb":"get","resource":"secrets","name":"db"`,
			`"namespace":"vault","verb":"get","resource":"secrets","name":"key"`,
			`"namespace":"bank","verb":"get","resource":"configmaps","name":"all"`,
			`"namespace":"shop","verb":"get","resource":"persistentvolumeclaims","name":"data-1"`,
			`"verb":"get","resource":"persistentvolumes","name":"pv-7"`,
			`"namespace":"shop","verb":"create","resource":"serviceaccounts","subresource":"token","name":"api"`,
			`"namespace":"shop","verb":"get","resource":"pods","name":"api-0"`, `"namespace":"shop","verb":"list","resource":"services"`,
		} {
			fmt.Fprintf(
				&b, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{%s},%s}}`+"\n",
				object, user,
			)
		}
	}
	return b.String()
}

// TestReviewsDoNotDependOnTheOrderOfTheState answers the same reviews from manifests in many
// orders, in one file and in several, and from their snapshots.
func TestReviewsDoNotDependOnTheOrderOfTheState(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	documents := file("reviews.json", orderedReviews())
	configuration := file(
		"authorizers.yaml",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: Node, name: node}\n"+
			"- {type: RBAC, name: rbac}\n",
	)
	run := func(args ...string) string {
		var out, errOut bytes.Buffer
		status := Main(append([]string{"node-authorizer"}, args...), strings.NewReader(""), &out, &errOut)
		if status == command.StatusUndecided {
			t.Fatalf("%s: %s", args, errOut.String())
		}
		return out.String()
	}
	answers := func(from ...string) string {
		args := []string{"review", "-f", documents}
		for _, path := range from {
			args = append(args, "--from", path)
		}
		return run(args...) + run(append(args, "--authorization-config", configuration)...)
	}
	manifests := orderedCluster()
	want := answers(file("cluster.yaml", strings.Join(manifests, "\n---\n")))
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(manifests), func(i, j int) { manifests[i], manifests[j] = manifests[j], manifests[i] })
		half := r.IntN(len(manifests))
		first := file("first.yaml", strings.Join(manifests[:half], "\n---\n"))
		items := strings.ReplaceAll(strings.Join(manifests[half:], "\n- "), "\n  ", " ")
		second := file("second.yaml", "apiVersion: v1\nkind: List\nitems:\n- "+items)
		if got := answers(first, second); got != want {
			t.Fatalf("seed %d: the answers from manifests in another order are\n%s\nwant\n%s", seed, got, want)
		}
		snapshot := filepath.Join(dir, "cluster.snapshot")
		run("snapshot", "--from", second, "--from", first, "-o", snapshot)
		if got := answers(snapshot); got != want {
			t.Fatalf("seed %d: the answers from the snapshot are\n%s\nwant\n%s", seed, got, want)
		}
	}
	if !strings.Contains(want, "pod bank/api-1 ") || !strings.Contains(want, "pod shop/api-0 ") {
		t.Errorf("the pods that are named are not the first:\n%s", want)
	}
}
