package manifest

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

const goodPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "n"}}`

func seeds(f *testing.F) {
	for _, pattern := range []string{
		"testdata/*.yaml", "../source/testdata/*.yaml", "../source/testdata/forms/*", "../source/testdata/*.golden",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(kubectlList))
	f.Add([]byte(`{"apiVersion":"v1","items":[` + goodPod + `,` + goodPod + `],"kind":"List"}` + goodPod + "\n---\n" + kubectlList))
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`))
	f.Add([]byte("a: &a [*a]\n---\n&x {apiVersion: v1, kind: Pod, metadata: {name: a}}"))
	f.Add([]byte("items:\n "))
	f.Add([]byte("{a: b}\n...\n%TAG ! x\n---\n\"\\u0000\""))
}

// JSON is split in the same way for any size of reads.
func FuzzJSONSplitter(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, err := splitJSON(bytes.NewReader(text))
		slowly, slowErr := splitJSON(iotest.OneByteReader(bytes.NewReader(text)))
		if a, b := strings.Join(whole, "\n"), strings.Join(slowly, "\n"); a != b {
			t.Fatalf("at once\n%s\nslowly\n%s", a, b)
		}
		if (err == nil) != (slowErr == nil) || err != nil && err.Error() != slowErr.Error() {
			t.Fatalf("errors at once: %v, slowly: %v", err, slowErr)
		}
	})
}

// A YAML list gives the same objects when it is read item by item and as a whole.
func FuzzYAMLList(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		decode := func(whole int) (string, bool) {
			docs, err := splitYAML(string(text), whole)
			var b strings.Builder
			for _, doc := range docs {
				objects, broken := objectsOf(doc)
				err = cmp.Or(err, broken)
				for _, o := range objects {
					b.Write(o.JSON())
					b.WriteByte('\n')
				}
			}
			return b.String(), err == nil
		}
		items, ok := decode(0)
		if !ok {
			return // items may refer to each other; then item by item is an error
		}
		if whole, ok := decode(len(text) + maxWholeYAML); ok && whole != items {
			t.Fatalf("item by item\n%s\nas a whole\n%s", items, whole)
		}
	})
}
