package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func outputPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "output.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOutputPageNamesEveryDocument compares the table of docs/reference/output.md with the documents.
func TestOutputPageNamesEveryDocument(t *testing.T) {
	rows := map[string]string{} // commands by kind
	row := regexp.MustCompile(`(?m)^\| (.*) \| \[(\w+)\]\(schemas/v1alpha1/(\w+)\.json\) \|`)
	for _, match := range row.FindAllStringSubmatch(outputPage(t), -1) {
		if match[2] != match[3] {
			t.Errorf("%s links to the schema of %s", match[2], match[3])
		}
		rows[match[2]] = match[1]
	}
	for _, d := range documents() {
		kind := d.result.DocumentKind()
		if !strings.Contains(rows[kind], "`"+d.commands[0]) {
			t.Errorf("the table has no row of kind %s with the command %s", kind, d.commands[0])
		}
		delete(rows, kind)
	}
	if len(rows) > 0 {
		t.Errorf("the table has other rows: %v", rows)
	}
}

// TestOutputPageExamples runs the examples of docs/reference/output.md and compares what they print.
func TestOutputPageExamples(t *testing.T) {
	// A command continues in indented lines.
	example := regexp.MustCompile("(?m)^```console\n\\$ (.*(?:\n    .*)*)\n((?:.*\n)*?)```$")
	script, n := "[!exec:jq] skip 'there is no jq'\n", 0
	var files strings.Builder
	for _, match := range example.FindAllStringSubmatch(outputPage(t), -1) {
		n++
		script += fmt.Sprintf("exec sh example%d\ncmp stdout want%d\n", n, n)
		fmt.Fprintf(&files, "-- example%d --\n%s\n-- want%d --\n%s", n, match[1], n, match[2])
	}
	if n < 4 {
		t.Fatalf("the page has %d examples", n)
	}
	file := filepath.Join(t.TempDir(), "output.txtar")
	if err := os.WriteFile(file, []byte(script+files.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{file}, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			shop, err := os.ReadFile(filepath.Join(repository, "examples", "shop.snapshot"))
			if err != nil {
				return err
			}
			examples := filepath.Join(env.WorkDir, "examples")
			if err := os.Mkdir(examples, 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(examples, "shop.snapshot"), shop, 0o600); err != nil {
				return err
			}
			return withoutCluster(env)
		},
	})
}
