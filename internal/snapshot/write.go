package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

const (
	// magic begins a snapshot. Its bytes show if a transfer changed line ends or cut the high bit.
	magic = "\x93NASnap\r\n\x1a\n\x00"
	// version is the version of the binary form.
	version = 1
	// prefixLength is the length of what is before the compressed rest.
	prefixLength = len(magic) + 4 + 8 + sha256.Size
)

// Objects are the objects of a section: lines of compact JSON, by namespace and name. A line is valid
// until the next one.
type Objects struct {
	Kind string
	All  iter.Seq[[]byte]
}

// Write writes a snapshot. The same objects give the same bytes.
func Write(w io.Writer, header []byte, sections []Objects) error {
	c, err := newCompressor()
	if err != nil {
		return err
	}
	directory := appendNumber(nil, len(sections))
	for _, objects := range sections {
		s := newSectionWriter(c, objects.Kind)
		if err := s.write(objects.All); err != nil {
			return fmt.Errorf("%s: %w", objects.Kind, err)
		}
		directory = s.appendDirectory(directory)
	}
	frames := c.body
	c.body = nil
	places := []byte{}
	for _, raw := range [][]byte{header, directory} {
		f, err := c.add(raw)
		if err != nil {
			return err
		}
		places = appendNumber(appendNumber(places, f.size), f.stored)
	}
	var file bytes.Buffer
	if err := writeParts(&file, places, c.body, frames); err != nil {
		return err
	}
	if _, err := Open(bytes.NewReader(file.Bytes())); err != nil {
		return fmt.Errorf("the snapshot is too large for the binary form (%w)", err)
	}
	_, err = w.Write(file.Bytes())
	return err
}

// writeParts writes the prefix and the rest of a file.
func writeParts(w io.Writer, parts ...[]byte) error {
	length, sum := 0, sha256.New()
	for _, p := range parts {
		length += len(p)
		_, _ = sum.Write(p)
	}
	if length > maxFile {
		return errors.New("the snapshot would be larger than 1 GiB")
	}
	prefix := append([]byte(magic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(prefix[len(magic):], version)
	prefix = binary.LittleEndian.AppendUint64(prefix, uint64(length))
	if _, err := w.Write(sum.Sum(prefix)); err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// sectionWriter writes the objects of one kind.
type sectionWriter struct {
	*compressor
	kind    string
	objects int
	last    key

	names     table // namespaces and nodes
	nameFrame frame
	shapes    table
	shape     []byte // shapes that are not in a frame yet
	inShape   int
	shapeAt   []counted
	block     blockWriter
	blocks    []blockPlace
}

// counted is a frame with a number of entries.
type counted struct {
	frame
	n int
}

func newSectionWriter(c *compressor, kind string) *sectionWriter {
	return &sectionWriter{compressor: c, kind: kind, names: table{}, shapes: table{}}
}

// table numbers strings in the order in which they appear.
type table map[string]int

// number returns the number of a string, and whether it is new.
func (t table) number(of []byte) (n int, added bool) {
	n, known := t[string(of)]
	if !known {
		n = len(t)
		t[string(of)] = n
	}
	return n, !known
}

func (s *sectionWriter) write(objects iter.Seq[[]byte]) error {
	var t template
	for text := range objects {
		if err := t.split(text); err != nil {
			return err
		}
		if err := s.add(&t); err != nil {
			return err
		}
	}
	if err := s.endBlock(); err != nil {
		return err
	}
	if err := s.endShapes(); err != nil {
		return err
	}
	var err error
	s.nameFrame, err = s.compressor.add(s.names.encoded())
	return err
}

func (s *sectionWriter) add(t *template) error {
	at := key{string(t.values[Namespace]), string(t.values[Name])}
	if s.objects > 0 && s.last.compare(at) >= 0 {
		return fmt.Errorf("object %q follows %q, which has to come after it", at, s.last)
	}
	s.last = at
	s.objects++
	shape, added := s.shapes.number(t.shape)
	if added {
		s.shape = appendSized(s.shape, t.shape)
		if s.inShape++; len(s.shape) >= frameTarget {
			if err := s.endShapes(); err != nil {
				return err
			}
		}
	}
	s.block.add(t, at, shape, s.names)
	if s.block.rows == rowsPerBlock || s.block.size >= frameTarget {
		return s.endBlock()
	}
	return nil
}

func (s *sectionWriter) endShapes() error {
	if s.inShape == 0 {
		return nil
	}
	f, err := s.compressor.add(s.shape)
	s.shapeAt = append(s.shapeAt, counted{f, s.inShape})
	s.shape, s.inShape = s.shape[:0], 0
	return err
}

func (s *sectionWriter) endBlock() error {
	if s.block.rows == 0 {
		return nil
	}
	f, err := s.compressor.add(s.block.encoded())
	s.blocks = append(s.blocks, blockPlace{counted{f, s.block.rows}, s.block.text, s.block.first, s.block.last})
	s.block.reset()
	return err
}

// encoded returns the strings in the order of their numbers.
func (t table) encoded() []byte {
	ordered := make([]string, len(t))
	for text, n := range t {
		ordered[n] = text
	}
	raw := appendNumber(nil, len(ordered))
	before := ""
	for _, text := range ordered {
		raw = appendText(raw, before, text)
		before = text
	}
	return raw
}

// key is the name of an object of a section.
type key struct{ namespace, name string }

func (k key) compare(o key) int {
	if c := strings.Compare(k.namespace, o.namespace); c != 0 {
		return c
	}
	return strings.Compare(k.name, o.name)
}

// blockPlace is the place of a block, and its first and last object.
type blockPlace struct {
	counted
	// text is the length of all its names and other texts.
	text        int
	first, last key
}

// blockWriter collects the columns of a block.
type blockWriter struct {
	rows        int
	size, text  int
	shapes      []byte
	columns     [columns][]byte
	before      [columns]string
	first, last key
}

func (b *blockWriter) reset() {
	*b = blockWriter{shapes: b.shapes[:0], columns: b.columns}
	for c := range b.columns {
		b.columns[c] = b.columns[c][:0]
	}
}

func (b *blockWriter) add(t *template, at key, shape int, names table) {
	b.last = at
	if b.rows == 0 {
		b.first = b.last
	}
	b.rows++
	b.shapes = appendNumber(b.shapes, shape)
	for c := range columns {
		switch c {
		case Namespace, Node, Scope:
			n, _ := names.number(t.values[c])
			b.columns[c] = appendNumber(b.columns[c], n)
		case UID:
			b.columns[c] = appendUID(b.columns[c], t.values[c])
		default:
			text := string(t.values[c])
			b.columns[c] = appendText(b.columns[c], b.before[c], text)
			b.text += len(text)
			b.before[c] = text
		}
		b.size += len(t.values[c])
	}
}

func (b *blockWriter) encoded() []byte {
	raw := appendSized(nil, b.shapes)
	for _, column := range b.columns {
		raw = appendSized(raw, column)
	}
	return raw
}

func (s *sectionWriter) appendDirectory(to []byte) []byte {
	place := func(f frame) { to = appendNumber(appendNumber(appendNumber(to, f.offset), f.size), f.stored) }
	to = appendSized(to, []byte(s.kind))
	to = appendNumber(to, s.objects)
	place(s.nameFrame)
	to = appendNumber(to, len(s.shapeAt))
	for _, f := range s.shapeAt {
		place(f.frame)
		to = appendNumber(to, f.n)
	}
	to = appendNumber(to, len(s.blocks))
	for _, b := range s.blocks {
		place(b.frame)
		to = appendNumber(appendNumber(to, b.n), b.text)
		for _, text := range []string{b.first.namespace, b.first.name, b.last.namespace, b.last.name} {
			to = appendSized(to, []byte(text))
		}
	}
	return to
}
