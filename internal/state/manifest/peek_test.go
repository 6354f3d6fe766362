package manifest

import (
	"bytes"
	"strings"
	"testing"
)

func TestPeekYAML(t *testing.T) {
	for _, test := range []struct {
		rule, text string
		dash       bool
		want       Type
		known      bool
	}{
		{
			rule: "two lines", text: "apiVersion: apps/v1\nkind: Deployment\nspec:\n  kind: Pod\n",
			want: Type{"apps/v1", "Deployment"}, known: true,
		},
		{rule: "an item", text: "  - apiVersion: v1\n    kind: Pod\n", dash: true, want: Type{"v1", "Pod"}, known: true},
		{
			rule: "lists without indentation", text: "items:\n- kind: Pod\n- a\nkind: PodList\napiVersion: v1\n",
			want: Type{"v1", "PodList"}, known: true,
		},
		{rule: "comments and empty lines", text: "# kind: Pod\n\nkind: Node\n  \napiVersion: v1\n", want: Type{"v1", "Node"}, known: true},
		{rule: "Windows", text: "kind: Node\r\napiVersion: v1\r\n", want: Type{"v1", "Node"}, known: true},
		{rule: "no kind", text: "apiVersion: v1\n"},
		{rule: "a kind twice", text: "kind: Pod\nkind: Node\napiVersion: v1\n"},
		{rule: "a key in quotes", text: "\"kind\": Node\nx: \"\nkind: Pod\n \"\napiVersion: v1\n"},
		{rule: "a key with a space after it", text: "kind : Node\napiVersion: v1\nx: \"\nkind: Pod\n \"\n"},
		{rule: "a key with a tag", text: "!!str kind: Node\napiVersion: v1\nx: \"\nkind: Pod\n \"\n"},
		{rule: "a merge", text: "<<: {kind: Node}\nkind: Pod\napiVersion: v1\n"},
		{rule: "flow style", text: "{kind: Pod, apiVersion: v1}\n"},
		{rule: "an alias", text: "kind: *a\napiVersion: v1\n"},
		{rule: "a number", text: "kind: 0\napiVersion: v1\n"},
		{rule: "a number with a sign", text: "kind: Pod\napiVersion: -1\n"},
		{rule: "infinity", text: "kind: .inf\napiVersion: v1\n"},
		{rule: "nothing", text: "kind: Null\napiVersion: v1\n"},
		{rule: "true in YAML 1.1", text: "kind: yes\napiVersion: v1\n"},
		{rule: "a number in quotes", text: "kind: \"0\"\napiVersion: 'on'\n", want: Type{"on", "0"}, known: true},
		{rule: "a word that continues on the next line", text: "kind: Pod\n  List\napiVersion: v1\n"},
		{rule: "a word that continues below a comment", text: "apiVersion: v1\nkind: Pod\n\n  List\n"},
		{rule: "text in several lines", text: "kind: |\n  Pod\napiVersion: v1\n"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h, known := peekYAML([]byte(test.text), test.dash)
			if known != test.known || known && h != test.want {
				t.Errorf("got %+v, %t; want %+v, %t", h, known, test.want, test.known)
			}
		})
	}
}

// FuzzPeek: peek returns the same type as the parser.
func FuzzPeek(f *testing.F) {
	seeds(f)
	f.Add([]byte("\"kind\": Node\nx: \"\nkind: Pod\n \"\napiVersion: v1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if looksJSON(text) || bytes.HasPrefix(bytes.TrimSpace(text), []byte("-")) || strings.Contains(string(text), "\n---") {
			return
		}
		h, known := peekYAML(text, false)
		if !known {
			return
		}
		converted, err := yamlToJSON(text)
		if err != nil {
			return
		}
		if parsed := readType(converted); parsed != h {
			t.Errorf("peeked %+v, parsed %+v", h, parsed)
		}
	})
}

// FuzzDocuments: any input is read or refused with its position, and every document
// has its line in the file.
func FuzzDocuments(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := countLines(text) + 1
		_, err := Read(t.Context(), []string{"-"}, Options{
			Stdin: bytes.NewReader(text), Wanted: func(string, string, []byte) bool { return true },
		}, func(d *Document) error {
			var o struct {
				Data map[string]any `json:"data"`
			}
			_ = d.Decode(&o)
			_ = d.Describe()
			for key := range o.Data {
				if line := d.Line("data", key); line < 1 || line > lines {
					t.Errorf("data.%s is on line %d of %d", key, line, lines)
				}
				if line, ok := d.TextLine("data", key); ok && (line < 1 || line > lines+1) {
					t.Errorf("the text of data.%s is on line %d of %d", key, line, lines)
				}
			}
			return nil
		})
		if err != nil && !strings.HasPrefix(err.Error(), "stdin") {
			t.Errorf("an error without a position: %v", err)
		}
	})
}
