package manifest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

// readDocuments reads one text and returns kind, name and line of the wanted objects.
func readDocuments(t *testing.T, text string, wanted func(apiVersion, kind string, text []byte) bool) ([]string, error) {
	t.Helper()
	var taken []string
	_, err := manifest.Read(context.Background(), []string{"-"}, manifest.Options{Stdin: strings.NewReader(text), Wanted: wanted},
		func(d *manifest.Document) error {
			var o struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if err := d.Decode(&o); err != nil {
				return err
			}
			taken = append(taken, fmt.Sprintf("%s %s %s:%d", d.Kind, o.Metadata.Name, d.File(), d.Line("metadata", "name")))
			return nil
		})
	return taken, err
}

// Items have their lines also in lists that are not split while they are read.
func TestItemsOfNestedListsHaveTheirLines(t *testing.T) {
	const n = 100_000
	var text strings.Builder
	text.WriteString("\n{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n" +
		"{\"apiVersion\": \"v1\", \"kind\": \"List\",\n\"items\": [")
	for i := range n {
		if i > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, "\n{\"apiVersion\": \"v1\",\n\"kind\": \"Node\", \"metadata\":\n{\"name\": \"n-%d\"}}", i)
	}
	text.WriteString("]}]}")
	i := 0
	_, err := manifest.Read(t.Context(), []string{"-"}, manifest.Options{Stdin: strings.NewReader(text.String()), Wanted: kinds("Node")},
		func(d *manifest.Document) error {
			begins := 5 + 3*i
			if got, want := d.Position(), (manifest.Position{Document: 1, Item: 1, Line: begins}); got != want {
				return fmt.Errorf("item %d is at %+v, want %+v", i, got, want)
			}
			if line := d.Line("metadata", "name"); line != begins+2 {
				return fmt.Errorf("the name of item %d is on line %d, want %d", i, line, begins+2)
			}
			i++
			return nil
		})
	if err != nil || i != n {
		t.Errorf("%d items, %v; want %d", i, err, n)
	}
}

func kinds(names ...string) func(string, string, []byte) bool {
	return func(_, kind string, _ []byte) bool { return slices.Contains(names, kind) }
}

func TestDocumentsAreReadWithTheirLines(t *testing.T) {
	for _, test := range []struct{ rule, text, want string }{
		{"a document", "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n", "Node a stdin:4"},
		{
			"the second document", "apiVersion: v1\nkind: Pod\n---\n# more\nkind: Node\napiVersion: v1\nmetadata:\n  name: a\n",
			"Node a stdin:8",
		},
		{
			"an item of a list in YAML",
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- apiVersion: v1\n  kind: Node\n  metadata:\n" +
				"    name: a\n",
			"Node a stdin:8",
		},
		{"an item of a list of one kind", "apiVersion: v1\nkind: NodeList\nitems:\n- metadata:\n    name: a\n", "Node a stdin:5"},
		{"JSON", "{\"apiVersion\": \"v1\", \"kind\": \"Node\",\n \"metadata\": {\n \"name\": \"a\"}}", "Node a stdin:3"},
		{
			"an item of a list in JSON",
			"{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\"},\n" +
				"{\"apiVersion\": \"v1\", \"kind\": \"Node\",\n\"metadata\": {\"name\": \"a\"}}]}",
			"Node a stdin:4",
		},
		{
			"JSON between documents of YAML",
			"---\n{\"apiVersion\": \"v1\", \"kind\": \"Node\",\n\"metadata\": {\"name\": \"a\"}}\n---\nkind: Pod\napiVersion: v1\n",
			"Node a stdin:3",
		},
		{"a kind that only a parser finds", "{apiVersion: v1, kind: Node,\n metadata: {name: a}}\n", "Node a stdin:2"},
		{"a kind in quotes", "\"kind\": \"Node\"\napiVersion: 'v1'\nmetadata:\n  name: a\n", "Node a stdin:4"},
		{"a kind with a comment", "kind: Node # of worker\napiVersion: v1\nmetadata:\n  name: a\n", "Node a stdin:4"},
		{"a kind within a text", "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\nx: \"\nkind: Pod\n\"\n", "Node a stdin:4"},
		{"a kind deeper within", "apiVersion: v1\nspec:\n  kind: Pod\nkind: Node\nmetadata:\n  name: a\n", "Node a stdin:6"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			taken, err := readDocuments(t, test.text, kinds("Node"))
			if err != nil || !slices.Equal(taken, []string{test.want}) {
				t.Errorf("took %q, %v; want %s", taken, err, test.want)
			}
		})
	}
}

func TestUnwantedObjectsAreNotParsed(t *testing.T) {
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: [broken\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
	taken, err := readDocuments(t, text, kinds("Node"))
	if err != nil || len(taken) != 1 {
		t.Errorf("took %q, %v", taken, err)
	}
	if _, err := readDocuments(t, text, kinds("Pod")); err == nil || !strings.Contains(err.Error(), "document 1, line 3") {
		t.Errorf("err = %v", err)
	}
}

func TestDocumentsWithoutAType(t *testing.T) {
	if _, err := readDocuments(t, "mapRoles: []\n", kinds("Node")); err == nil || !strings.Contains(err.Error(), "document has no kind") {
		t.Errorf("err = %v", err)
	}
	taken, err := readDocuments(t, "mapRoles: []\n", kinds(""))
	if err != nil || len(taken) != 1 {
		t.Errorf("took %q, %v", taken, err)
	}
	if _, err := readDocuments(t, "- 1\n", kinds("")); err == nil || !strings.Contains(err.Error(), "want an object, got a list") {
		t.Errorf("err = %v", err)
	}
}

func TestLinesOfTexts(t *testing.T) {
	for _, test := range []struct {
		rule, text string
		line       int // 0 if the text's lines are none of the file
	}{
		{"literal", "data:\n  key: |\n    a\n    b\n", 3},
		{"literal, with an indicator and a comment", "data:\n  key: |2- # here\n    a\n", 3},
		{"literal, beginning with an empty line", "data:\n  key: |\n\n    a\n", 3},
		{"on the line of its key", "data:\n  key: a\n", 2},
		{"below its key", "data:\n  key:\n    a\n", 3},
		{"folded", "data:\n  key: >\n    a\n    b\n", 0},
		{"quoted, with the lines written as \\n", "data:\n  key: \"a\\nb\"\n", 0},
		{"JSON", "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"key\": \"a\\nb\"}}", 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			text := test.text
			want := test.line
			if !strings.HasPrefix(text, "{") {
				text = "apiVersion: v1\nkind: ConfigMap\n" + text
				if want > 0 {
					want += 2
				}
			}
			_, err := manifest.Read(context.Background(), []string{"-"},
				manifest.Options{Stdin: strings.NewReader(text), Wanted: kinds("ConfigMap")},
				func(d *manifest.Document) error {
					if line, ok := d.TextLine("data", "key"); ok != (want > 0) || line != want {
						t.Errorf("line %d, %t; want %d", line, ok, want)
					}
					return nil
				})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A list that is split into items can be read as well.
func TestLargeListsAreReadItemByItem(t *testing.T) {
	var yaml, json strings.Builder
	yaml.WriteString("apiVersion: v1\nitems:\n")
	json.WriteString("{\"apiVersion\": \"v1\", \"items\": [")
	filler := strings.Repeat("x", 1000)
	const n = 6000
	for i := range n {
		fmt.Fprintf(&yaml, "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: pod-%d\n    note: %s\n", i, filler)
		fmt.Fprintf(&json, "\n{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"pod-%d\", \"note\": %q}},", i, filler)
	}
	yaml.WriteString("- apiVersion: v1\n  kind: Node\n  metadata:\n    name: last\nkind: List\n")
	json.WriteString("\n{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"last\"}}],\n\"kind\": \"List\"}")
	for name, text := range map[string]string{"list.yaml": yaml.String(), "list.json": json.String()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		asked, taken := 0, 0
		names, err := manifest.Read(context.Background(), []string{path}, manifest.Options{
			Wanted: func(_, kind string, _ []byte) bool { asked++; return kind == "Node" },
		}, func(d *manifest.Document) error {
			taken++
			if got, want := d.Line("metadata", "name"), strings.Count(text[:strings.Index(text, "last")], "\n")+1; got != want {
				t.Errorf("%s: line %d, want %d", name, got, want)
			}
			return nil
		})
		if err != nil || taken != 1 || asked < n || !slices.Equal(names, []string{path}) {
			t.Errorf("%s: took %d, asked about %d, names %q, %v", name, taken, asked, names, err)
		}
	}
}
