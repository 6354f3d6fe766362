package snapshot

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// readAll reads everything of a file that could be opened.
func readAll(f *File) {
	_, _ = io.Copy(io.Discard, io.LimitReader(f.Text(), 64<<20))
	for _, s := range f.Sections {
		_ = s.Scan(Selection{Namespace: "a", Node: "n"}, func(*Row) error { return nil })
	}
}

// Any bytes with the right length and checksum are read or refused.
func FuzzOpen(f *testing.F) {
	file := written(f, lines()[1:])
	f.Add(file[prefixLength:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, rest []byte) {
		var b bytes.Buffer
		if err := writeParts(&b, rest); err != nil {
			t.Skip()
		}
		if opened, err := Open(&b); err == nil {
			readAll(opened)
		}
	})
}

// Any content of frames is read or refused.
func FuzzFrames(f *testing.F) {
	names := table{}
	var block blockWriter
	var split template
	if err := split.split([]byte(`{"metadata":{"name":"a","namespace":"n","uid":"u"},"spec":{"nodeName":"m"}}`)); err != nil {
		f.Fatal(err)
	}
	block.add(&split, key{"n", "a"}, 0, names)
	f.Add(names.encoded(), appendSized(nil, split.shape), block.encoded(), uint16(1), 1, "n", "a")
	c, err := newCompressor()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, names, shapes, block []byte, rows uint16, text int, namespace, name string) {
		c.body = nil
		s := newSectionWriter(c, "Pod")
		add := func(raw []byte) frame {
			at, err := c.add(raw)
			if err != nil {
				t.Skip()
			}
			return at
		}
		s.nameFrame, s.objects = add(names), int(rows)
		s.shapeAt = []counted{{add(shapes), 1}}
		only := key{namespace, name}
		s.blocks = []blockPlace{{counted{add(block), int(rows)}, max(0, text), only, only}}
		if opened, err := Open(bytes.NewReader(assembled(t, s))); err == nil {
			readAll(opened)
		}
	})
}

// Any line that can be written is read unchanged.
func FuzzLine(f *testing.F) {
	for _, s := range lines() {
		n := 0
		for line := range s.All {
			if n++; n < 10 {
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var b bytes.Buffer
		if err := Write(&b, []byte(header), []Objects{{"Pod", texts([]string{string(line)})}}); err != nil {
			return
		}
		opened, err := Open(&b)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(opened.Text())
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if _, got, _ := strings.Cut(string(text), "\n"); got != string(line)+"\n" {
			t.Fatalf("%q is read as %q", line, got)
		}
	})
}
