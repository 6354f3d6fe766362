package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/testing/randomcluster"
)

// walk calls f for each command of the program.
func walk(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		walk(c, f)
	}
}

// commandName is the name of a command without the name of the program.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}

// writesDocuments reports whether a command has -o json.
func writesDocuments(cmd *cobra.Command) bool {
	output := cmd.Flags().Lookup("output")
	return output != nil && slices.Contains(strings.FieldsFunc(output.Usage, func(r rune) bool { return r == ' ' || r == ',' }), "json")
}

// TestEveryDocumentHasASchema compares the commands that have -o json with the table of documents.
func TestEveryDocumentHasASchema(t *testing.T) {
	with, without := map[string]bool{}, map[string]bool{}
	walk(Root(), func(cmd *cobra.Command) {
		if writesDocuments(cmd) {
			with[commandName(cmd)] = true
		} else {
			without[commandName(cmd)] = true
		}
	})
	rows, kinds := map[string]bool{}, map[string]bool{}
	for _, d := range documents() {
		if kind := d.result.DocumentKind(); kinds[kind] {
			t.Errorf("two documents have the kind %s", kind)
		} else {
			kinds[kind] = true
		}
		for _, name := range d.commands {
			rows[name] = true
			if !with[name] {
				t.Errorf("the table of documents names the command %q, which has no -o json", name)
			}
		}
	}
	for name := range with {
		if !rows[name] {
			t.Errorf("the command %q has -o json: add what it writes to documents() in schemas_test.go, and run "+
				"UPDATE_GOLDEN=1 go test ./internal/cli -run TestSchemas", name)
		}
	}
	if len(with) < 10 || len(without) < 5 {
		t.Errorf("commands with -o json: %v, without: %v", with, without)
	}
}

// TestNoSchemaIsLeft: a schema without a document is one of a kind that was renamed or removed.
func TestNoSchemaIsLeft(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schemasFolder, "*.json"))
	if err != nil || len(files) != len(documents()) {
		t.Errorf("%d schemas (%v) for %d documents: remove what is left of others", len(files), err, len(documents()))
	}
}

// manifestOf has the objects of a random cluster, as kubectl prints them.
func manifestOf(t *testing.T, rc *randomcluster.Cluster) string {
	t.Helper()
	var b strings.Builder
	for _, o := range rc.Objects {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.String()
}

// randomLog is an audit log about the nodes of a random cluster.
func randomLog(t *testing.T, rc *randomcluster.Cluster, requests int) string {
	t.Helper()
	pick := func(from ...string) string { return from[rc.IntN(len(from))] }
	var b strings.Builder
	for i := range requests {
		at := time.Date(2026, 1, 31, 12, 0, i, 0, time.UTC).Format(time.RFC3339Nano)
		resource, namespace, name := pick("secrets", "configmaps", "pods", "nodes", "leases"), pick("a", "b"), pick("s1", "n1", "p1")
		user := pick("system:node:n1", "system:node:n2", "system:node:n9", "kubelet", "system:bootstrap:abcdef")
		event := map[string]any{
			"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": fmt.Sprint(i), "stage": "ResponseComplete",
			"requestURI":               "/api/v1/namespaces/" + namespace + "/" + resource + "/" + name,
			"verb":                     pick("get", "list", "watch", "update", "patch"),
			"user":                     map[string]any{"username": user, "groups": []string{pick("system:nodes", "other")}},
			"userAgent":                "kubelet/v1.37.1 (linux/amd64) kubernetes/5c9f8ab",
			"objectRef":                map[string]any{"resource": resource, "namespace": namespace, "name": name, "apiVersion": "v1"},
			"responseStatus":           map[string]any{"metadata": map[string]any{}, "code": []int{200, 200, 403, 404, 500}[rc.IntN(5)]},
			"requestReceivedTimestamp": at, "stageTimestamp": at,
		}
		line, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// questions are command lines about a random cluster.
func questions(rc *randomcluster.Cluster, cluster, other, earlier, log string) [][]string {
	pick := func(from ...string) string { return from[rc.IntN(len(from))] }
	from := func(args ...string) []string {
		return append(args, "--from", cluster, "--kubernetes-version", rc.Features.Minor().String())
	}
	all := [][]string{
		{"version"},
		{"explain-code", "AlwaysAllow"},
		from("attack-paths", "--all-nodes", "--what-to-change"), from("attack-paths", "--all-serviceaccounts"),
		from("attack-paths", "--all-nodes", "--certain-only"), from("attack-paths", "node/n1"),
		from("attack-paths", "node/n1", "user/alice", "--group", "g1"),
		from("attack-paths", "--all-nodes", "--compare-with", earlier),
		from("diff", "--to", other),
		{"diff", "--from", other, "--to", cluster},
		from("reach", "n1"), from("reach", "n1", "--kind", "secrets"),
		from("audit", log), from("audit", log, "--keep-system-node-binding"),
		{"doctor", "--from", cluster},
		{"doctor", "--from", cluster, "--plan"},
	}
	for range 8 {
		question := []string{
			pick("get", "list", "watch", "create", "update", "patch", "delete"),
			pick("secrets", "secrets/s1", "pods", "pods/p1", "nodes", "nodes/n1", "nodes/n2", "pv/pv1", "sa/x", "configmaps/c"),
		}
		question = append(from(question...), "-n", pick("a", "b", "kube-system"))
		all = append(all, append([]string{"who-can"}, question...))
		all = append(all, from("can-i", "--list", "--node", pick("n1", "n2")), from("can-i", "--list", "--as", "alice", "-n", "a"))
		question = append(question, [][]string{{"--node", "n1"}, {"--as", "alice", "--as-group", "g1"}, {"--node", "n9"}}[rc.IntN(3)]...)
		all = append(all, append([]string{"can-i"}, question...), append([]string{"explain"}, question...))
	}
	for _, account := range []string{"a/x", "b/default"} {
		all = append(all, from("scope", "suggest", "--serviceaccount", account),
			from("scope", "suggest", "--serviceaccount", account, "--audit", log))
	}
	scope := filepath.Join("..", "..", "scopes", "cilium.yaml")
	return append(all, from("scope", "check", "-f", scope, "--audit", log), []string{"scope", "admission-policy", "-f", scope})
}

// TestDocumentsMatchTheirSchemas asks all commands that read files about random clusters.
func TestDocumentsMatchTheirSchemas(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	published := newSchemas(schemasFolder)
	seen, asked, clusters := map[string]int{}, 0, uint64(12)
	for seed := range clusters {
		rc, before := randomcluster.New(seed), randomcluster.New(seed+clusters)
		cluster, other := write("cluster.yaml", manifestOf(t, rc)), write("other.yaml", manifestOf(t, before))
		minor := rc.Features.Minor().String()
		_, earlier, _ := run("attack-paths", "--all-nodes", "--from", other, "--kubernetes-version", minor, "-o", "json")
		earlier, log := write("earlier.json", earlier), write("audit.log", randomLog(t, rc, rc.IntN(60)))
		for _, args := range questions(rc, cluster, other, earlier, log) {
			asked++
			format := []render.Format{render.JSON, render.YAML}[rc.IntN(2)]
			status, stdout, stderr := run(append(args, "-o", string(format))...)
			if stdout == "" && status == command.StatusUndecided && strings.Contains(stderr, "error: ") {
				seen["errors"]++
				continue
			}
			if err := published.validate(format, []byte(stdout)); err != nil {
				t.Fatalf("seed %d: %v: %v\n%s", seed, args, err, stdout)
			}
			seen[kindOf(t, stdout)]++
		}
	}
	live := map[string]bool{ // see the scripts, and test/e2e/setup
		"Approval": true, "Revocation": true, "QuarantineResult": true, "Quarantines": true, "Release": true, "SetupVerification": true,
		"ClusterAnswers": true, "NoAnswer": true, "ProviderTest": true,
	}
	for _, d := range documents() {
		if kind := d.result.DocumentKind(); !live[kind] && seen[kind] < 10 {
			t.Errorf("only %d documents of kind %s: %v", seen[kind], kind, seen)
		}
	}
	if answered := asked - seen["errors"]; answered*5 < asked*4 {
		t.Errorf("only %d of %d questions were answered: %v", answered, asked, seen)
	}
}

// kindOf is the kind of a document.
func kindOf(t *testing.T, text string) string {
	t.Helper()
	var header struct{ Kind string }
	if err := yaml.Unmarshal([]byte(text), &header); err != nil {
		t.Fatal(err)
	}
	return header.Kind
}

// TestGoldenDocumentsMatchTheirSchemas: other packages have documents in files.
func TestGoldenDocumentsMatchTheirSchemas(t *testing.T) {
	published := newSchemas(schemasFolder)
	for pattern, fewest := range map[string]int{
		"../doctor/testdata/plan/*.plan.json": 3, "../audit/replay/testdata/*.json.golden": 1,
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < fewest {
			t.Errorf("%s: %d files, want %d or more: %v", pattern, len(files), fewest, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := published.validate(render.JSON, text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestSchemasRefuse: schemas refuse fields and values that they do not have.
func TestSchemasRefuse(t *testing.T) {
	const start = "{\n  \"apiVersion\": \"output.node-authorizer.io/v1alpha1\",\n  \"kind\": \"Version\",\n  "
	const rest = `"version": "v1", "goVersion": "go1", "platform": "linux/amd64", "kubernetes": {"oldest": "1.30", "latest": "1.37"}}`
	published := newSchemas(schemasFolder)
	for _, tc := range []struct {
		rule, text string
		accepted   bool
	}{
		{"a whole document", start + rest, true},
		{"an unknown field", start + `"more": 1, ` + rest, false},
		{"an unknown field within", strings.Replace(start+rest, `"oldest"`, `"more": 1, "oldest"`, 1), false},
		{"a lacking field", strings.Replace(start+rest, `"goVersion": "go1", `, "", 1), false},
		{"another type", strings.Replace(start+rest, `"go1"`, "1", 1), false},
		{"null", strings.Replace(start+rest, `"go1"`, "null", 1), false},
		{"another version", strings.Replace(start+rest, "v1alpha1", "v1", 1), false},
		{"an unknown kind", strings.Replace(start+rest, `"Version"`, `"Other"`, 1), false},
		{"another order", "{" + rest[:len(rest)-1] + `, "apiVersion": "output.node-authorizer.io/v1alpha1", "kind": "Version"}`, false},
	} {
		if err := published.validate(render.JSON, []byte(tc.text)); (err == nil) != tc.accepted {
			t.Errorf("%s: %v", tc.rule, err)
		}
	}
}
