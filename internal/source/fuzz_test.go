package source

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func seeds(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/forms/*", "testdata/*.golden"} {
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

// Any input is read or refused with its place; what is read can be written as a
// snapshot, which says the same.
func FuzzLoad(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := LoadFiles(t.Context(), []string{"-"}, FileOptions{Stdin: bytes.NewReader(text), Retain: true})
		if err != nil {
			var input *InputError
			if !errors.As(err, &input) || input.File != "stdin" {
				t.Fatalf("error without a file: %v", err)
			}
			if input.Document > 0 && (input.Line < 1 || input.Line > 1+countLines(text)+1) && !compressed(text) {
				t.Fatalf("line %d of %d: %v", input.Line, countLines(text), err)
			}
			return
		}
		var b bytes.Buffer
		if err := WriteSnapshot(&b, s); err != nil {
			t.Fatal(err)
		}
		again, err := LoadFiles(t.Context(), []string{"-"}, FileOptions{Stdin: &b, Retain: true})
		if err != nil {
			t.Fatalf("the snapshot cannot be read: %v", err)
		}
		if got, want := answers(again), answers(s); got != want {
			t.Fatalf("answers of the snapshot\n%s\nanswers of the input\n%s", got, want)
		}
	})
}

func compressed(text []byte) bool {
	return bytes.HasPrefix(text, []byte{0x1f, 0x8b}) || bytes.HasPrefix(text, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// JSON is cut in the same way however it arrives.
func FuzzJSONSplitter(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, err := cutJSON(bytes.NewReader(text))
		slowly, slowErr := cutJSON(iotest.OneByteReader(bytes.NewReader(text)))
		if a, b := strings.Join(whole, "\n"), strings.Join(slowly, "\n"); a != b {
			t.Fatalf("at once\n%s\nslowly\n%s", a, b)
		}
		if (err == nil) != (slowErr == nil) || err != nil && err.Error() != slowErr.Error() {
			t.Fatalf("errors at once: %v, slowly: %v", err, slowErr)
		}
	})
}

// A YAML list that is read item by item holds what it holds as a whole.
func FuzzYAMLList(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		decode := func(whole int) (string, bool) {
			docs, err := cutYAML(string(text), whole)
			d := decoder{retain: true}
			for _, doc := range docs {
				if err == nil {
					err = d.decode(doc)
				}
			}
			var b strings.Builder
			for _, o := range d.objects {
				b.Write(o.encoded)
				b.WriteByte('\n')
			}
			return b.String(), err == nil
		}
		items, ok := decode(0)
		if !ok {
			return // items may refer to each other, which is refused
		}
		if whole, ok := decode(len(text) + maxWholeYAML); ok && whole != items {
			t.Fatalf("item by item\n%s\nas a whole\n%s", items, whole)
		}
	})
}
