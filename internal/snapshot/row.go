package snapshot

import (
	"errors"
	"fmt"
)

// Row is one object.
type Row struct {
	// At is the position of the object in its section, from 0.
	At int
	// Shape is the number of the object's shape in its section.
	Shape int
	// UID is set if the uid has the usual form, and UIDText if it has another.
	UID     Packed
	UIDText string
	// Refs are the positions of the namespace and the node among the names of the section.
	NamespaceRef, NodeRef int

	section *Section
	values  [columns]string // but for UID
}

// Value returns the string of a column.
func (r *Row) Value(c Column) string {
	if c == UID {
		if r.UIDText != "" {
			return r.UIDText
		}
		return r.UID.String()
	}
	return r.values[c]
}

func (r *Row) in(want Selection) bool {
	return (want.Namespace == "" || want.Namespace == r.values[Namespace]) && (want.Name == "" || want.Name == r.values[Name]) &&
		(want.Node == "" || want.Node == r.values[Node])
}

// ShapeText returns the text of the object's shape, in which the byte n+1 stands for the string of
// column n.
func (r *Row) ShapeText() ([]byte, error) { return r.section.shape(r.Shape) }

var errUnquotable = errors.New("has a string that needs escapes")

// AppendText appends the object's text: one line of JSON, without its end.
func (r *Row) AppendText(to []byte) ([]byte, error) {
	shape, err := r.ShapeText()
	if err != nil {
		return to, err
	}
	copied := 0
	for i, b := range shape {
		if b >= ' ' {
			continue
		}
		c, ok := columnOf(b)
		if !ok {
			return to, r.damaged(fmt.Errorf("has a shape with the byte %#x", b))
		}
		value := r.Value(c)
		if !plain(value) {
			return to, r.damaged(errUnquotable)
		}
		to = append(append(to, shape[copied:i]...), value...)
		copied = i + 1
	}
	return append(to, shape[copied:]...), nil
}

// plain reports whether a string is the same in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return true
}

func (r *Row) damaged(err error) error {
	return r.section.damaged(fmt.Sprintf("object %d", r.At+1), err)
}

// Invalid returns the error of a row with text that is not that of an object.
func (r *Row) Invalid(err error) error { return r.damaged(err) }

// Damaged returns the error of a row of which the object is not what the columns say.
func (r *Row) Damaged() error {
	return r.damaged(errors.New("its name, namespace or node differs from that of its index"))
}

// block is a decoded block.
type block struct {
	section *Section
	names   []string
	rows    []Row
	raw     []byte
	texts   []string
	err     error
}

func newBlock(s *Section, names []string) *block { return &block{section: s, names: names} }

// decode decodes a block: all objects, or those of a node, if it is not negative.
func (b *block) decode(at, node int) {
	b.rows, b.err = b.rows[:0], nil
	place := b.section.blocks[at]
	if b.raw, b.err = b.section.file.decompress(place.frame, b.raw); b.err == nil {
		first := 0
		for _, before := range b.section.blocks[:at] {
			first += before.n
		}
		b.err = b.decodeColumns(place, first, node)
	}
	if b.err != nil {
		b.err = b.section.damaged(fmt.Sprintf("block %d", at+1), b.err)
	}
}

func (b *block) decodeColumns(place blockPlace, first, node int) error {
	c := &cursor{rest: b.raw}
	shapes := &cursor{rest: c.sized()}
	var column [columns]*cursor
	for i := range column {
		column[i] = &cursor{rest: c.sized()}
	}
	if err := c.end(); err != nil {
		return err
	}
	if place.n > len(shapes.rest) {
		return errShort
	}
	if node >= 0 {
		found, err := b.hasNode(*column[Node], place.n, node)
		if err != nil || !found {
			return err
		}
	}
	for range place.n {
		b.rows = append(b.rows, Row{section: b.section, At: first + len(b.rows), Shape: shapes.number(1 << 40)})
	}
	for _, of := range []Column{Name, Other} {
		b.texts = column[of].texts(place.n, place.text, b.texts[:0])
		for i, text := range b.texts {
			b.rows[i].values[of] = text
		}
	}
	for i := range b.rows {
		r := &b.rows[i]
		r.UID, r.UIDText = column[UID].uid()
		r.NamespaceRef, r.values[Namespace] = b.name(column[Namespace])
		r.NodeRef, r.values[Node] = b.name(column[Node])
		_, r.values[Scope] = b.name(column[Scope])
	}
	for _, c := range append(column[:], shapes) {
		if err := c.end(); err != nil {
			return err
		}
	}
	return b.inOrder(place)
}

// hasNode reports whether a column has a reference.
func (b *block) hasNode(refs cursor, n, node int) (bool, error) {
	found := false
	for range n {
		if at, _ := b.name(&refs); at == node {
			found = true
		}
	}
	return found, refs.end()
}

// name reads a reference to a name.
func (b *block) name(c *cursor) (int, string) {
	n := c.number(1 << 40)
	if n >= len(b.names) {
		c.fail(errors.New("has a reference to an unknown name"))
		return 0, ""
	}
	return n, b.names[n]
}

// inOrder checks that the objects are in the order that the directory states.
func (b *block) inOrder(place blockPlace) error {
	n := len(b.rows)
	if n == 0 {
		return errShort
	}
	if b.rows[0].key() != place.first || b.rows[n-1].key() != place.last {
		return errors.New("its first or last object is not that of the directory")
	}
	for i := range b.rows[1:] {
		before, r := &b.rows[i], &b.rows[i+1]
		if before.NamespaceRef == r.NamespaceRef && before.values[Name] < r.values[Name] {
			continue
		}
		if before.key().compare(r.key()) >= 0 {
			return errors.New("its objects are not in order")
		}
	}
	return nil
}

func (r *Row) key() key { return key{r.values[Namespace], r.values[Name]} }
