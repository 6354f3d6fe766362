package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// cutJSON splits text and writes down the documents. A reader of one byte at a
// time makes the window move and grow at every position.
func cutJSON(r io.Reader) (docs []string, err error) {
	s := &jsonSplitter{window: newWindow(r), file: "f", emit: func(d *document) error {
		docs = append(docs, fmt.Sprintf("%d/%d line %d %+v: %s", d.number, d.item, d.line, d.list, d.text))
		return nil
	}}
	_, err = s.split()
	return docs, err
}

func TestJSONDocumentsAreCut(t *testing.T) {
	got, err := cutJSON(strings.NewReader(`
{"a": "}\"{\\", "b": [1, {"c": "]"}], "items": 5} {}
{"apiVersion": "v1", "items": [ {"n": 1},
 {"n": 2} ], "kind": "List", "x": [true, null, -1.5e7]}
{"kind": "PodList", "apiVersion": "v1", "items": []}{"kind": "Box", "items": [1]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`1/0 line 2 {APIVersion: Kind:}: {"a": "}\"{\\", "b": [1, {"c": "]"}], "items": 5}`,
		`2/0 line 2 {APIVersion: Kind:}: {}`,
		`3/1 line 3 {APIVersion:v1 Kind:}: {"n": 1}`,
		`3/2 line 4 {APIVersion:v1 Kind:}: {"n": 2}`,
		`5/0 line 5 {APIVersion: Kind:}: {"kind": "Box", "items": [1]}`,
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// An object that fills the window many times over is read; one that never ends
// is not read without end.
func TestWindowGrowsUpToALimit(t *testing.T) {
	large := `{"kind": "ConfigMap", "data": "` + strings.Repeat("x", 5*windowSize) + `"}`
	docs, err := cutJSON(strings.NewReader(large))
	if err != nil || len(docs) != 1 {
		t.Errorf("%d documents, error %v", len(docs), err)
	}
	endless := io.MultiReader(strings.NewReader("\n"+`{"data": "`), &repeat{})
	_, err = cutJSON(endless)
	if !errors.Is(err, errTooLarge) || !strings.HasPrefix(err.Error(), "f: document 1, line 2: ") {
		t.Errorf("error is %v", err)
	}
}

// repeat is text without end.
type repeat struct{}

func (repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReadErrorsAreReported(t *testing.T) {
	broken := errors.New("disk on fire")
	for name, before := range map[string]string{"at the beginning": "", "within an object": `{"a": `, "within a list": `{"items": [{}, `, "between": "{}\n"} {
		t.Run(name, func(t *testing.T) {
			_, err := cutJSON(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken)))
			if !errors.Is(err, broken) {
				t.Errorf("error is %v", err)
			}
		})
	}
	s := yamlSplitter{r: bufio.NewReader(io.MultiReader(strings.NewReader("a: b"), iotest.ErrReader(broken))), whole: maxWholeYAML}
	if err := s.split(); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
}

// cutYAML splits text, with lists cut into items from a size on.
func cutYAML(text string, whole int) (docs []*document, err error) {
	s := &yamlSplitter{r: bufio.NewReaderSize(strings.NewReader(text), 16), file: "f", whole: whole, emit: func(d *document) error {
		kept := *d
		kept.text = bytes.Clone(d.text)
		docs = append(docs, &kept)
		return nil
	}}
	return docs, s.split()
}

func writeDocs(docs []*document) string {
	var b strings.Builder
	for _, d := range docs {
		fmt.Fprintf(&b, "== %d/%d line %d %v\n%s", d.number, d.item, d.line, d.list, d.text)
	}
	return b.String()
}

func TestYAMLDocumentsAreCut(t *testing.T) {
	docs, err := cutYAML("%YAML 1.1\n# nothing\n---\n\n---\na: 1\n--- {b: 2}\n---\t# c\n--- |\n  ---\n  text\n...\n# nothing\n---\nd: |\n  ---x\n---e: 5\n", maxWholeYAML)
	if err != nil {
		t.Fatal(err)
	}
	want := "== 1/0 line 5 { }\n   \na: 1\n" +
		"== 2/0 line 7 { }\n    {b: 2}\n" +
		"== 3/0 line 9 { }\n    |\n  ---\n  text\n" +
		"== 4/0 line 14 { }\n   \nd: |\n  ---x\n---e: 5\n"
	if got := writeDocs(docs); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const kubectlList = `apiVersion: v1
items:
# first
- apiVersion: v1
  kind: Pod
  metadata:
    name: a
    annotations:
      text: |
        - not an item
        items:

      more: "quoted
        over lines"
-
  apiVersion: v1
  kind: Pod
  metadata: {name: b}

- {apiVersion: v1, kind: Pod, metadata: {name: c}}
kind: List
metadata:
  resourceVersion: ""
`

func TestYAMLListIsCutIntoItems(t *testing.T) {
	for name, text := range map[string]string{
		"as kubectl prints it": kubectlList,
		"items indented":       indentItems(kubectlList),
		"windows lines":        strings.ReplaceAll(kubectlList, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := cutYAML("x: y\n---\n"+text+"---\nx: z\n", 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range docs[1 : len(docs)-1] {
				dec := decoder{}
				if err := dec.decode(d); err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d/%d line %d: %s", d.number, d.item, d.line, dec.objects[0].api.GetName()))
			}
			want := "2/1 line 6: a, 2/2 line 17: b, 2/3 line 22: c"
			if strings.Join(got, ", ") != want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
			}
			if last := docs[len(docs)-1]; last.number != 3 || last.item != 0 {
				t.Errorf("the document behind the list is %+v", last)
			}
		})
	}
}

func indentItems(list string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(list) {
		inside = inside && line != "kind: List\n"
		if inside {
			b.WriteString("  ")
		}
		b.WriteString(line)
		inside = inside || line == "items:\n"
	}
	return b.String()
}

func TestLargeYAML(t *testing.T) {
	line := "# " + strings.Repeat("x", 1000) + "\n"
	padding := strings.Repeat(line, maxWholeYAML/len(line)+1)
	pod := "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n"
	for name, c := range map[string]struct{ text, want string }{
		"a list":             {"apiVersion: v1\nitems:\n" + pod + padding + "- kind: Pod\n  apiVersion: v1\n  metadata: {name: 5}\nkind: List\n", fmt.Sprintf("a.yaml: document 1, item 2, line %d: Pod: metadata.name: want a string, got a number", 9+strings.Count(padding, "\n"))},
		"not a list":         {"apiVersion: v1\nkind: ConfigMap\n" + padding + "data: {}\n", fmt.Sprintf("a.yaml: document 1, line %d: document is larger than 4 MiB and not a list in block style; split it, or convert it to JSON", 3+maxWholeYAML/len(line))},
		"items of no list":   {"apiVersion: v1\nitems:\n" + pod + padding + "kind: Box\n", `a.yaml: document 1, line 1: document is larger than 4 MiB and its kind "Box" is not a list`},
		"flow style":         {"{apiVersion: v1, kind: List, items: [" + strings.Repeat("{apiVersion: v1, kind: Pod, metadata: {name: a}}, ", maxWholeYAML/40) + "]}", "a.yaml: document 1, line 1: document is larger than 4 MiB and not a list in block style; split it, or convert it to JSON"},
		"items twice":        {"apiVersion: v1\nitems:\n" + padding + pod + "items:\n" + pod + "kind: List\n", fmt.Sprintf("a.yaml: document 1, line %d: items are given twice", 7+strings.Count(padding, "\n"))},
		"items without dash": {"apiVersion: v1\nkind: List\nitems:\n" + padding + " a: b\n", fmt.Sprintf("a.yaml: document 1, line %d: want a dash that begins an item, at the indentation of the others", 4+strings.Count(padding, "\n"))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, "a.yaml", c.text)
			if err == nil || err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}
