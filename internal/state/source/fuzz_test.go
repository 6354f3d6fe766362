package source

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

func seeds(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/forms/*", "testdata/*.golden", "../manifest/testdata/*.yaml"} {
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
	f.Add([]byte(`{"apiVersion":"v1","items":[` + goodPod + `,` + goodPod + `],"kind":"List"}` + goodPod + "\n---\nkind: List\n"))
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`))
	f.Add([]byte("a: &a [*a]\n---\n&x {apiVersion: v1, kind: Pod, metadata: {name: a}}"))
	f.Add([]byte("items:\n "))
	f.Add([]byte("{a: b}\n...\n%TAG ! x\n---\n\"\\u0000\""))
}

// Any input is read or refused with its position. An input that is read can be written as a
// snapshot, which gives the same answers.
func FuzzLoad(f *testing.F) {
	seeds(f)
	for base, places := range oddObjects() {
		for document := range oddjson.Seeds(base, places) {
			f.Add(document)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := LoadFiles(t.Context(), []string{"-"}, FileOptions{Stdin: bytes.NewReader(text), Retain: true})
		if err != nil {
			var input *manifest.Error
			if !errors.As(err, &input) || input.File != "stdin" {
				t.Fatalf("error without a file: %v", err)
			}
			if input.Document > 0 && (input.Line < 1 || input.Line > 1+bytes.Count(text, []byte("\n"))+1) && !compressed(text) {
				t.Fatalf("line %d of %d: %v", input.Line, bytes.Count(text, []byte("\n")), err)
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
