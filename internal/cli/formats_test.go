package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// allFormats are the formats that some command has.
const allFormats = "table wide json yaml name csv dot sarif html junit markdown jsonpath= custom-columns= manifest " +
	"authorization-configuration webhook-configuration"

// formatsOf are the formats of each command that has -o for a format. The command refuses all others.
var formatsOf = map[string]string{
	"approve":                    "table json yaml",
	"attack-paths":               "table wide json yaml name csv dot sarif html",
	"audit":                      "table wide json yaml name csv",
	"audit merge":                "table wide json yaml name csv",
	"can-i":                      "table json yaml csv",
	"attest test-provider":       "table json yaml junit",
	"diff":                       "table wide json yaml name csv sarif junit markdown html",
	"doctor":                     "table wide json yaml name csv sarif junit html",
	"explain":                    "table json yaml dot",
	"explain-code":               "table json yaml",
	"quarantine":                 "table json yaml",
	"quarantine list":            "table wide json yaml name csv",
	"reach":                      "table wide json yaml name csv dot html",
	"release":                    "table json yaml",
	"revoke":                     "table json yaml",
	"scope admission-policy":     "manifest json yaml",
	"scope authorization-config": "authorization-configuration webhook-configuration",
	"scope check":                "table json yaml name csv",
	"scope suggest":              "manifest json yaml",
	"setup verify":               "table json yaml",
	"version":                    "table json yaml",
	"who-can":                    "table wide json yaml name csv dot",
}

// withoutRows are documents that have no rows, of commands that have -o csv: the command line that writes them refuses it.
var withoutRows = []string{"MigrationPlan", "NoAnswer"}

// TestFormatsOfEveryCommand fails for a pair of a command and a format that is not in formatsOf.
func TestFormatsOfEveryCommand(t *testing.T) {
	t.Setenv("KUBECONFIG", "none")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("cluster.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	walk(Root(), func(cmd *cobra.Command) {
		flag := cmd.Flags().Lookup("output")
		if flag == nil || !strings.HasPrefix(flag.Usage, "output format") {
			return
		}
		name := commandName(cmd)
		want, known := formatsOf[name]
		if !known {
			t.Errorf("%s has -o: add its formats to formatsOf", name)
			return
		}
		seen[name] = true
		has := strings.Fields(want)
		if slices.Contains(has, "json") {
			has = append(has, "jsonpath=", "custom-columns=")
		}
		complete, _ := cmd.GetFlagCompletionFunc("output")
		offered, _ := complete(cmd, nil, "")
		if slices.Sort(offered); !slices.Equal(offered, slices.Sorted(slices.Values(has))) {
			t.Errorf("%s has the formats %s, want %s", name, offered, has)
		}
		for format := range strings.FieldsSeq(allFormats) {
			if slices.Contains(has, format) {
				continue
			}
			given := strings.Replace(strings.Replace(format, "path=", "path={.kind}", 1), "columns=", "columns=A:.kind", 1)
			line := slices.Concat(strings.Fields(name), strings.Fields(sweepArguments[cmd.Name()]), []string{"-o", given})
			status, stdout, stderr := run(line...)
			if status != command.StatusUndecided || stdout != "" || !strings.Contains(stderr, "--output ") {
				t.Errorf("%s: status %d, %q, want a refusal of the format: %s", line, status, stdout, stderr)
			}
			for _, possible := range has {
				if !strings.Contains(stderr, possible) {
					t.Errorf("%s: the refusal does not name %s: %s", line, possible, stderr)
				}
			}
		}
	})
	for name := range formatsOf {
		if !seen[name] {
			t.Errorf("formatsOf has the command %q, which has no -o", name)
		}
	}
	for _, d := range documents() {
		_, rows := d.result.(render.Listing)
		for _, name := range d.commands {
			kind := d.result.DocumentKind()
			if csv := strings.Contains(formatsOf[name], "csv"); csv && rows == slices.Contains(withoutRows, kind) {
				t.Errorf("the document %s of %s has rows: %t", kind, name, rows)
			}
		}
	}
}
