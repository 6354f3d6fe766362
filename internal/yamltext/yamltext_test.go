package yamltext_test

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

func TestMistakesAreFoundOnTheirLine(t *testing.T) {
	pods := strings.Repeat("- name: a\n  groups:\n  - \"b\n    c\"\n", 500)
	for _, tc := range []struct {
		rule, text string
		line       int
	}{
		{"an indentation that nothing opens", "a: b\n c: d\ne: f\n", 2},
		{"an item among names, deep in a list", "x:\n- a: b\n  c: d\n- e: f\n  - g\n- h: i\n", 5},
		{"a name among items, deep in a list", "x:\n  y:\n  - a\n  - b\n  c: d\n  - e\n", 6},
		{"a tab", "a:\n  b: c\n\td: e\n", 3},
		{"a quote that does not end", "a: b\nc: \"d\ne: f\ng: h\n", 2},
		{"a quote that does not end, after some that do", "a: 'b\n  c'\nd: 'e\n  f'\ng: 'h\ni: j\n", 5},
		{"a brace that does not end", "a: b\nc: {d: e\nf: g\n", 2},
		{"an alias of nothing", "a: b\nc: &d e\nf: *g\nh: i\n", 3},
		{"after many lists whose strings span lines", pods + "- name: \"a\" b\n" + pods, 2001},
		{"in the second document", "a: b\n---\nc: d\n e: f\n", 4},
		{"on the first line", "a: b: c\n", 1},
		{"in a text without an end of line", "a: [b", 1},
		{"after comments", "# a\n# b\n\n\"c\" d\n", 4},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			_, err := yamltext.Parse([]byte(tc.text))
			if err == nil {
				t.Fatal("no error")
			}
			if err.Line != tc.line || err.Problem == "" || strings.Contains(err.Problem, "line ") {
				t.Errorf("line %d: %s; want line %d", err.Line, err.Problem, tc.line)
			}
		})
	}
}

// The given decoder decides what counts as a mistake.
func TestLocateWithOtherDecoders(t *testing.T) {
	for _, tc := range []struct {
		rule, text, want string
	}{
		{"a name twice", "a: b\nc: d\na: e\nc: f\n", `line 3: key "a" already set in map`},
		{"an alias of nothing, in a decoder that reports no line", "a: b\nc: *d\ne: f\n", "line 2: unknown anchor 'd' referenced"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := yamltext.Locate([]byte(tc.text), func(text []byte) error {
				_, err := yaml.YAMLToJSONStrict(text)
				return err
			})
			if got == nil || got.Error() != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
	if err := yamltext.Locate([]byte("a: b\n"), func([]byte) error { return nil }); err != nil {
		t.Errorf("a mistake in what a decoder reads: %v", err)
	}
}

// The search is bounded, for texts that would have to be decoded many times.
func TestTheSearchIsBounded(t *testing.T) {
	text := []byte(strings.Repeat("a\n", 1<<20))
	for rule, fails := range map[string]func(n int) bool{
		"every prefix":              func(int) bool { return true },
		"only the whole text":       func(n int) bool { return n == len(text) },
		"every second line":         func(n int) bool { return n/2%2 == 0 },
		"from the middle on, twice": func(n int) bool { return n > len(text)/2 && n != len(text)-2 },
	} {
		t.Run(rule, func(t *testing.T) {
			read := 0
			got := yamltext.Locate(text, func(part []byte) error {
				if read += len(part); !fails(len(part)) {
					return nil
				}
				if len(part) < len(text) {
					return errors.New("yaml: line 3: another problem")
				}
				return errors.New("yaml: line 7: a problem")
			})
			if got.Line < 1 || got.Line > 1<<20 || got.Problem != "a problem" {
				t.Errorf("got %v", got)
			}
			if most := 9*len(text) + 4<<20; read > most {
				t.Errorf("%d bytes were decoded, want at most %d", read, most)
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	for _, tc := range []struct {
		rule, text string
		documents  int
		after      int
	}{
		{"nothing", "# a\n", 0, 0},
		{"one", "a: b\n", 1, 0},
		{"one in flow style", "{a: b}\n", 1, 0},
		{"two", "a: b\n---\nc: d\n", 2, 3},
		{"two, the second empty", "a: b\n---\n", 2, 3},
		{"text without a marker", "{a: b}\n# c\n{d: e}\n", 1, 3},
		{"invalid text", "{a: b\n", 0, 0},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			text, _ := yamltext.Parse([]byte(tc.text))
			if len(text.Documents) != tc.documents {
				t.Errorf("%d documents, want %d", len(text.Documents), tc.documents)
			}
			if after := yamltext.After([]byte(tc.text)); after != tc.after {
				t.Errorf("something follows on line %d, want %d", after, tc.after)
			}
		})
	}
}

func TestFind(t *testing.T) {
	text, err := yamltext.Parse([]byte("a:\n- b: 1\n- &x\n  c:\n    d: 2\ne: *x\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		rule string
		path []string
		line int
	}{
		{"the top", nil, 1},
		{"a value", []string{"a", "0", "b"}, 2},
		{"an item", []string{"a", "1", "c", "d"}, 5},
		{"through an alias", []string{"e", "c", "d"}, 5},
		{"the nearest enclosing value", []string{"a", "1", "c", "z", "y"}, 5},
		{"no such item", []string{"a", "7"}, 2},
		{"an item that is not a number", []string{"a", "-1"}, 2},
	} {
		if line := text.Line(yamltext.Find(text.Documents[0], tc.path...)); line != tc.line {
			t.Errorf("%s: line %d, want %d", tc.rule, line, tc.line)
		}
	}
}

// YAML has line breaks that editors do not have.
func TestLinesAreThoseOfEditors(t *testing.T) {
	text, err := yamltext.Parse([]byte("a: 1\r\nb: 2\rc: 3\u0085d: 4\u2028e: 5\nf: 6\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]int{"a": 1, "b": 2, "c": 2, "d": 2, "e": 2, "f": 3} {
		if got := text.Line(yamltext.Find(text.Documents[0], name)); got != line {
			t.Errorf("%s is on line %d, want %d", name, got, line)
		}
	}
}

// FuzzParse: a text is parsed, or its mistake is on one of its lines.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "a: b\n", "a: \"b\nc: d", "a: [b\n---\nc: {d: e", "- a\n b", "a: *b\r\nc: d\u2028e: f", "\ufeffa: b\n\x00",
		"---", "a: b\r---\rc: d",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		lines := strings.Count(string(raw), "\n") + 1
		text, err := yamltext.Parse(raw)
		if err != nil && (err.Line < 1 || err.Line > lines) {
			t.Errorf("a mistake on line %d of %d: %v", err.Line, lines, err)
		}
		for _, d := range text.Documents {
			if line := text.Line(d); line < 1 || line > lines {
				t.Errorf("a document on line %d of %d", line, lines)
			}
		}
		if after := yamltext.After(raw); after < 0 || after > lines {
			t.Errorf("something follows on line %d of %d", after, lines)
		}
	})
}
