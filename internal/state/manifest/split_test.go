package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// splitJSON splits text and prints the documents.
func splitJSON(r io.Reader) (docs []string, err error) {
	err = splitDocuments("f", &stream{Reader: bufio.NewReaderSize(r, windowSize)}, func(d *document) error {
		docs = append(docs, fmt.Sprintf("%d/%d line %d %+v: %s", d.number, d.item, d.line, d.list, d.text))
		return nil
	})
	return docs, err
}

func TestJSONDocumentsAreSplit(t *testing.T) {
	got, err := splitJSON(strings.NewReader(`
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

// Documents of JSON between separators cost no more than others, also after a large one.
func TestSeparatorsBetweenJSON(t *testing.T) {
	const n = 20_000
	text := `{"a": "` + strings.Repeat("x", 1<<20) + `"}` + strings.Repeat("\n---\n{}", n)
	docs, err := splitJSON(strings.NewReader(text + "\n---\na: b\n"))
	if err != nil || len(docs) != n+2 {
		t.Fatalf("%d documents, error %v", len(docs), err)
	}
	if last, want := docs[n+1], fmt.Sprintf("%d/0 line %d {APIVersion: Kind:}: \na: b\n", n+2, 2*n+2); last != want {
		t.Errorf("the last document is %q, want %q", last, want)
	}
}

// An object much larger than the window is read; an endless object is refused.
func TestWindowGrowsUpToALimit(t *testing.T) {
	large := `{"kind": "ConfigMap", "data": "` + strings.Repeat("x", 5*windowSize) + `"}`
	docs, err := splitJSON(strings.NewReader(large))
	if err != nil || len(docs) != 1 {
		t.Errorf("%d documents, error %v", len(docs), err)
	}
	endless := io.MultiReader(strings.NewReader("\n"+`{"data": "`), &repeat{})
	_, err = splitJSON(endless)
	if !errors.Is(err, errTooLarge) || !strings.HasPrefix(err.Error(), "f: document 1, line 2: ") {
		t.Errorf("error is %v", err)
	}
}

// repeat is an endless text.
type repeat struct{}

func (repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReadErrorsAreReported(t *testing.T) {
	broken := errors.New("disk on fire")
	for name, before := range map[string]string{
		"at the beginning": "", "within an object": `{"a": `, "within a list": `{"items": [{}, `, "between": "{}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := splitJSON(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken)))
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

// splitYAML splits text, with lists split into items from a size on.
func splitYAML(text string, whole int) (docs []*document, err error) {
	s := &yamlSplitter{r: bufio.NewReaderSize(strings.NewReader(text), 16), file: "f", whole: whole, emit: func(d *document) error {
		kept := *d
		kept.text = bytes.Clone(d.text)
		docs = append(docs, &kept)
		return nil
	}}
	return docs, s.split()
}

// objectsOf returns the objects of a document.
func objectsOf(d *document) (objects []*Document, err error) {
	p, empty, err := d.whole()
	if empty || err != nil {
		return nil, err
	}
	err = p.each(0, func(o *Document) error {
		objects = append(objects, o)
		return cmp.Or(o.CheckType(), o.Validate())
	})
	return objects, err
}

func writeDocs(docs []*document) string {
	var b strings.Builder
	for _, d := range docs {
		fmt.Fprintf(&b, "== %d/%d line %d %v\n%s", d.number, d.item, d.line, d.list, d.text)
	}
	return b.String()
}

func TestYAMLDocumentsAreSplit(t *testing.T) {
	docs, err := splitYAML("%YAML 1.1\n# nothing\n---\n\n---\na: 1\n--- {b: 2}\n---\t# c\n--- |\n  ---\n  text\n...\n"+
		"# nothing\n---\nd: |\n  ---x\n---e: 5\n", maxWholeYAML)
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

// kubectlList is a list that kubectl printed.
//
//go:embed testdata/list.yaml
var kubectlList string

func TestYAMLListIsSplitIntoItems(t *testing.T) {
	for name, text := range map[string]string{
		"as kubectl prints it": kubectlList,
		"items indented":       indentItems(kubectlList),
		"windows lines":        strings.ReplaceAll(kubectlList, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := splitYAML("x: y\n---\n"+text+"---\nx: z\n", 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range docs[1 : len(docs)-1] {
				objects, err := objectsOf(d)
				if err != nil {
					t.Fatal(err)
				}
				var o struct {
					Metadata struct {
						Name string `json:"name"`
					} `json:"metadata"`
				}
				if err := objects[0].Decode(&o); err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d/%d line %d: %s", d.number, d.item, d.line, o.Metadata.Name))
			}
			want := "2/1 line 6: a, 2/2 line 17: b, 2/3 line 22: c"
			if strings.Join(got, ", ") != want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
			}
			if last := docs[len(docs)-1]; last.number != 3 || last.item != 0 {
				t.Errorf("the document after the list is %+v", last)
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
