package e2e

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli"
)

// TestPartsAnswerAsASnapshot puts each question to the live cluster, of which only parts are read,
// and to a snapshot, which holds all of it. The answers are the same: decision, reason, path, the
// opinion of each authorizer, and exit status.
func TestPartsAnswerAsASnapshot(t *testing.T) {
	c := client(t, shop.Plane)
	kubeconfig, snapshot := shop.AdminKubeconfig(), filepath.Join(t.TempDir(), "shop.snapshot")
	run(t, "snapshot", "-o", snapshot, "--kubeconfig", kubeconfig)
	live, from := []string{"--kubeconfig", kubeconfig}, []string{"--from", snapshot}
	paths := 0
	for _, q := range questions(t, c) {
		read, status := answer(t, explain(q, kubeconfig, live...))
		held, wanted := answer(t, explain(q, kubeconfig, from...))
		if status != wanted || !reflect.DeepEqual(read, held) {
			t.Errorf("%s: from parts %d %v\nfrom a snapshot %d %v", q, status, read, wanted, held)
		}
		if strings.Contains(string(mustMarshal(t, read)), `"path"`) {
			paths++
		}
	}
	for _, node := range []string{"web-1", "pay-1"} {
		read, _ := answer(t, append([]string{"reach", node}, live...))
		held, _ := answer(t, append([]string{"reach", node, "--in-total=false"}, from...))
		if !reflect.DeepEqual(read, held) {
			t.Errorf("reach of %s: from parts %v\nfrom a snapshot %v", node, read, held)
		}
	}
	if paths < 50 {
		t.Errorf("only %d answers have a path", paths)
	}
}

// run runs a command and returns what it writes to stdout, and the exit status.
func run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := cli.Main(append([]string{"node-authorizer"}, args...), strings.NewReader(""), &stdout, &stderr)
	if status != 0 && status != 1 {
		t.Fatalf("%v: exit status %d: %s", args, status, stderr.String())
	}
	return stdout.String(), status
}

// answer runs a command and returns its result without its metadata and the origin of the state, and the exit
// status.
func answer(t *testing.T, args []string) (map[string]any, int) {
	t.Helper()
	out, status := run(t, append(args, "-o", "json")...)
	var result map[string]any
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err)
	}
	delete(result["state"].(map[string]any), "origin")
	delete(result, "metadata")
	return result, status
}

// explain returns the arguments of explain for a question about another state.
func explain(q question, kubeconfig string, state ...string) []string {
	args := slices.Clone(q.args(kubeconfig)[2:]) // without the program and its command
	i := slices.Index(args, "--kubeconfig")
	return slices.Concat([]string{"explain"}, slices.Delete(args, i, i+2), state)
}

func mustMarshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
