package snapshot

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"
)

// Any bytes are read or refused.
func FuzzOpen(f *testing.F) {
	f.Add(written(f, objects()[2390:]))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _ = readAll(t, file)
	})
}

// Any index, and any content of a frame, is read or refused.
func FuzzIndex(f *testing.F) {
	head, headAt := frameOf(f, []byte(header))
	const seed = `{"header":{"stored":1,"size":1},"blocks":[{"stored":30,"size":100,"kind":"Pod","objects":1,"nodes":["n"]}]}`
	f.Add([]byte(seed), []byte("{}\n"))
	f.Fuzz(func(t *testing.T, text, content []byte) {
		stored, at := frameOf(t, content)
		_, _ = readAll(t, withIndexText(t, text, head, stored))
		_, _ = readAll(t, withIndex(t, index{Header: headAt, Blocks: []block{{place: at, Kind: "Pod", Objects: 1}}}, head, stored))
	})
}

// Any object that can be written is found by its names.
func FuzzObject(f *testing.F) {
	f.Add("n", "a", "b")
	f.Fuzz(func(t *testing.T, node, namespace, name string) {
		o := Object{Kind: "Pod", Node: node, Namespace: namespace, Name: name}
		for _, word := range (Selection{Node: node, Namespace: namespace, Name: name}).words() {
			o.Text = append(append(o.Text, ' '), word...)
		}
		invalid := func(text string) bool { return !utf8.ValidString(text) }
		if slices.ContainsFunc([]string{node, namespace, name}, invalid) || bytes.ContainsRune(o.Text, '\n') {
			t.Skip()
		}
		found := 0
		file := opened(t, written(t, slices.Concat(objects()[2300:], []Object{o})))
		err := file.Read(t.Context(), Selection{"Pod", node, namespace, name}, func(text []byte) error {
			if bytes.Equal(text, append(o.Text, '\n')) {
				found++
			}
			return nil
		})
		if err != nil || found != 1 {
			t.Fatalf("found %d times, error %v", found, err)
		}
	})
}
