package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

// load reads text from a file of that name in a temporary folder.
func load(t *testing.T, name, text string) (*State, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadFiles(context.Background(), []string{path}, FileOptions{Retain: true})
	if err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), filepath.Dir(path)+string(filepath.Separator), ""))
	}
	return s, nil
}

func mustLoad(t *testing.T, name, text string) *State {
	t.Helper()
	s, err := load(t, name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answers prints the content of a state.
func answers(s *State) string {
	var b strings.Builder
	for _, node := range s.Graph.Nodes() {
		for _, r := range s.Graph.Reach(node) {
			for _, path := range r.Paths {
				fmt.Fprintf(&b, "%s %s %s/%s: %s\n", node, r.Kind, r.Namespace, r.Name, path)
			}
		}
	}
	for k := range kindCount {
		if k.describe().inventory {
			continue // only attack paths depend on them
		}
		keys := s.objects.table(k).keys()
		slices.SortFunc(keys, func(a, b objectKey) int {
			return strings.Compare(a.namespace.Value()+"/"+a.name, b.namespace.Value()+"/"+b.name)
		})
		for _, key := range keys {
			fmt.Fprintf(&b, "%s %s/%s", k, key.namespace.Value(), key.name)
			switch k {
			case kindPod:
				pod, _ := s.Pod(key.namespace.Value(), key.name)
				fmt.Fprintf(&b, " %s", toYAML(pod))
			case kindPersistentVolume:
				pv, _ := s.PersistentVolume(key.name)
				fmt.Fprintf(&b, " %s", toYAML(pv))
			case kindNode:
				node, _ := s.Node(key.name)
				fmt.Fprintf(&b, " %s", toYAML(node))
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "rbac %v version %s %s missing %v", s.RBACLoaded(), s.Version, s.ServerVersion, s.Missing())
	return b.String()
}

func toYAML(o any) string {
	text, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every file format of the same objects gives the same answers.
func TestForms(t *testing.T) {
	manifests := read(t, "testdata/forms/shop.yaml")
	want := answers(mustLoad(t, "shop.yaml", manifests))
	if !strings.Contains(want, "secret storage/disk-key <- persistentvolume pv-7") {
		t.Fatalf("the state lacks the volume's secret:\n%s", want)
	}

	var docs, indented, yamlItems []string
	for text := range strings.SplitSeq(manifests, "\n---") {
		text = strings.TrimSuffix(strings.TrimPrefix(text, " # comment after the marker"), "...\n")
		item := strings.TrimPrefix(strings.TrimSpace(text), "# A pod, a volume, and objects that they refer to.\n")
		yamlItems = append(yamlItems, "- "+strings.TrimSpace(strings.ReplaceAll(item, "\n", "\n  ")))
		doc, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(doc))
		withoutTag := strings.ReplaceAll(string(doc), "example.com/api:1", "api")
		indented = append(indented, strings.NewReplacer("{", "{\n\t", ",", ",\r\n    ", ":", " : ").Replace(withoutTag))
	}
	pods := strings.Replace(docs[0], `"kind":"Pod",`, "", 1)
	pods = strings.Replace(pods, `"apiVersion":"v1",`, "", 1)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]struct{ file, text string }{
		"yaml":                      {"a.yaml", manifests},
		"yaml with windows lines":   {"a.yaml", strings.ReplaceAll(manifests, "\n", "\r\n")},
		"yaml with byte order mark": {"a.yaml", "\ufeff" + manifests},
		"yaml list": {
			"a.yaml", "apiVersion: v1\nitems:\n" + strings.Join(yamlItems, "\n") + "\nkind: List\nmetadata: {}\n",
		},
		"yaml of json":           {"a.yaml", "---\n" + strings.Join(docs, "\n---\n")},
		"json with yaml markers": {"a.yaml", strings.Join(docs, "\n---\n")},
		"json, then yaml":        {"a.yaml", docs[0] + "\n---\n" + strings.Join(strings.Split(manifests, "\n---")[1:], "\n---")},
		"json concatenated":      {"a.json", strings.Join(docs, "")},
		"json by line":           {"a.jsonl", strings.Join(docs, "\n") + "\n"},
		"json indented":          {"a.json", strings.Join(indented, "\n\n")},
		"list":                   {"a.json", `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(docs, ",") + `]}`},
		"list, its kind at the end": {
			"a.json",
			`{"apiVersion":"v1","items":[` + strings.Join(docs, " , ") + `],"kind":"List","metadata":{"resourceVersion":""}}`,
		},
		"list in a list": {
			"a.json",
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[` + strings.Join(docs, ",") + `]}]}`,
		},
		"list of one kind, and more": {
			"a.json", `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + pods + `]}` + strings.Join(docs[1:], "\n"),
		},
		"gzip":                 {"a.yaml.gz", gzipped(t, manifests)},
		"gzip by another name": {"a.txt", gzipped(t, manifests)},
		"zstd":                 {"a.json.zst", string(encoder.EncodeAll([]byte(strings.Join(docs, "\n")), nil))},
		"given twice":          {"a.json", strings.Join(docs, "\n") + strings.Join(docs, "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustLoad(t, form.file, form.text)
			if got := answers(s); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if n := s.Counts()["Secret"]; n != 1 {
				t.Errorf("%d secrets are kept, want 1", n)
			}
		})
	}
}

func TestStdin(t *testing.T) {
	manifests := read(t, "testdata/forms/shop.yaml")
	s, err := LoadFiles(t.Context(), []string{"-"}, FileOptions{Stdin: strings.NewReader(manifests)})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Skipped()["Secret"]; n != 1 {
		t.Errorf("%d secrets are skipped, want 1", n)
	}
	if got, want := answers(s), answers(mustLoad(t, "a.yaml", manifests)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s.Origin != "file stdin" {
		t.Errorf("origin is %q", s.Origin)
	}
}

// A folder is read in sorted order, with its subfolders, without hidden files and
// files with other extensions.
func TestFolder(t *testing.T) {
	root := t.TempDir()
	for name, node := range map[string]string{
		"b.yaml": "second", "a/z.json": "first", "c.yml": "third",
		".hidden.yaml": "hidden", ".git/x.yaml": "hidden", "notes.txt": "not a manifest",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": %q}}`, node)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b.yaml", filepath.Join(root, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	s, err := LoadFiles(t.Context(), []string{root}, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if nodes := s.Graph.Nodes(); !slices.Equal(nodes, []string{"second"}) { // link.yaml is last
		t.Errorf("pod is on %v, want second, the last one", nodes)
	}
	want := []string{
		root + "/b.yaml: document 1, line 1: Pod default/p: given twice; the last one counts",
		root + "/c.yml: document 1, line 1: Pod default/p: given twice; the last one counts",
		root + "/link.yaml: document 1, line 1: Pod default/p: given twice; the last one counts",
	}
	if got := s.Warnings(); !slices.Equal(got, want) {
		t.Errorf("warnings are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if want := "files " + root + "/a/z.json, " + root + "/b.yaml, " + root + "/c.yml and 1 more"; s.Origin != want {
		t.Errorf("origin is %q, want %q", s.Origin, want)
	}
}

func TestInputsThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"empty", "dangling", "loop"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink("gone.yaml", filepath.Join(root, "dangling", "a.yaml"))
	_ = os.Symlink(".", filepath.Join(root, "loop", "self"))
	_ = os.WriteFile(filepath.Join(root, "cut.gz"), []byte(gzipped(t, strings.Repeat("# nothing\n", 100))[:40]), 0o600)
	_ = os.WriteFile(filepath.Join(root, "wide.yaml"), []byte("\xff\xfea\x00"), 0o600)
	for name, c := range map[string]struct {
		paths []string
		want  string
	}{
		"nothing":      {nil, "no input given: name a file, a folder, or - for standard input"},
		"no such file": {[]string{"gone"}, "read gone: no such file or folder"},
		"stdin twice":  {[]string{"-", "-"}, "standard input (-) is given twice, but can be read only once"},
		"no stdin":     {[]string{"-"}, "read stdin: there is no standard input"},
		"empty folder": {
			[]string{"empty"},
			"read empty: no manifests or snapshots in this folder (looked for names ending in .yaml, .yml, .json, .jsonl, " +
				".ndjson, .snapshot)",
		},
		"dangling link": {
			[]string{"dangling"}, "read dangling/a.yaml: the link's target does not exist; remove it or name the files one by one",
		},
		"link to a folder": {[]string{"loop"}, "read loop/self: links to folders are not followed; name the folder that it leads to"},
		"truncated gzip": {
			[]string{"cut.gz"}, "cut.gz: line 1: read: compressed data ends early; the file is incomplete, or still being compressed",
		},
		"UTF-16":            {[]string{"wide.yaml"}, "wide.yaml: text is UTF-16; save it as UTF-8"},
		"a file, then none": {[]string{"cut.gz", "gone"}, "read gone: no such file or folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(root)
			_, err := LoadFiles(t.Context(), c.paths, FileOptions{})
			if err == nil || err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

// A load can be cancelled while it waits for input.
func TestCancelledLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		_, _ = w.Write([]byte(goodPod)) // returns when the load reads
		cancel()
	}()
	_, err := LoadFiles(ctx, []string{"-"}, FileOptions{Stdin: r})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestProgressOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.json")
	const twoBatches = 1 << 20
	line := strings.Replace(goodPod, `"metadata"`, `"status": {"message": "`+strings.Repeat("x", 1000)+`"}, "metadata"`, 1) + "\n"
	text := strings.Repeat(line, twoBatches/len(line))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var reports []manifest.Progress
	_, err := LoadFiles(t.Context(), []string{path}, FileOptions{Progress: func(p manifest.Progress) { reports = append(reports, p) }})
	if err != nil {
		t.Fatal(err)
	}
	last := reports[len(reports)-1]
	want := manifest.Progress{Source: path, Done: int64(len(text)), Total: int64(len(text)), Objects: twoBatches / len(line)}
	if len(reports) < 2 || last != want {
		t.Errorf("%d reports, the last is %+v, want %+v", len(reports), last, want)
	}
}

// Repeated warnings are limited.
func TestWarningsAreCutOff(t *testing.T) {
	s := mustLoad(t, "a.json", strings.Repeat(goodPod, 100))
	w := s.Warnings()
	if len(w) != warningLimit+1 || w[warningLimit] != "and 89 more objects given twice" {
		t.Errorf("warnings are\n%s", strings.Join(w, "\n"))
	}
}
