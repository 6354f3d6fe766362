package snapshot

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// Column is a column of strings in which objects of one shape may differ.
type Column uint8

// The columns. Name, Namespace, UID and Node are of the object itself: its metadata, and
// spec.nodeName. Other is what else is different in each object: the name of the claim of a volume, of the
// volume of a claim, or the random end of the name of a token's volume. Scope is the namespace of a
// volume's claim.
const (
	Name Column = iota
	Namespace
	UID
	Node
	Other
	Scope
	columns
)

// mark is the byte that stands for the string of a column in the text of a shape. JSON has no such
// bytes in strings.
func (c Column) mark() byte { return byte(c) + 1 }

// columnOf returns the column that a byte of a shape stands for.
func columnOf(b byte) (Column, bool) { return Column(b - 1), b >= 1 && b <= byte(columns) }

// TokenVolume begins the names of the volumes that API servers add to pods. The rest is random.
const TokenVolume = "kube-api-access-"

var errNotCompact = errors.New("an object is not compact JSON")

// span is a string of an object's text, without its quotes.
type span struct {
	start, end int
	escaped    bool
}

// template makes shapes. It is reused for all objects.
type template struct {
	spans  []span
	values [columns][]byte
	shape  []byte
	stack  []byte
	keys   [4][]byte
}

// split divides an object's text into its shape and the strings of the columns. Both are valid until
// the next call.
func (t *template) split(text []byte) error {
	t.values = [columns][]byte{}
	if err := t.scan(text); err != nil {
		return err
	}
	t.findToken(text)
	t.shape = t.shape[:0]
	copied := 0
	for _, s := range t.spans {
		if s.escaped || s.start == s.end {
			continue
		}
		keep, column, found := t.replace(text[s.start:s.end])
		if !found {
			continue
		}
		t.shape = append(append(t.shape, text[copied:s.start+keep]...), column.mark())
		copied = s.end
	}
	t.shape = append(t.shape, text[copied:]...)
	return nil
}

// scan finds the strings of the text, and the values of columns among them.
func (t *template) scan(text []byte) error {
	t.spans, t.stack = t.spans[:0], t.stack[:0]
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '{' || c == '[':
			t.stack = append(t.stack, c)
		case c == '}' || c == ']':
			if len(t.stack) == 0 {
				return errNotCompact
			}
			t.stack = t.stack[:len(t.stack)-1]
		case c == '"':
			s, ok := stringAt(text, i+1)
			if !ok {
				return errNotCompact
			}
			i = s.end
			t.note(text, s)
		case c <= ' ':
			return errNotCompact
		}
	}
	return nil
}

// stringAt returns the string that begins after a quote.
func stringAt(text []byte, start int) (span, bool) {
	s := span{start: start, end: start}
	for s.end < len(text) {
		switch c := text[s.end]; {
		case c == '"':
			return s, true
		case c < ' ', c == '\\' && (s.end+1 == len(text) || text[s.end+1] < ' '):
			return s, false
		case c == '\\':
			s.escaped = true
			s.end++
		}
		s.end++
	}
	return s, false
}

// note remembers a key, or a string that is a value.
func (t *template) note(text []byte, s span) {
	depth := len(t.stack)
	inObject := depth > 0 && t.stack[depth-1] == '{'
	if inObject && s.end+1 < len(text) && text[s.end+1] == ':' {
		if depth < len(t.keys) {
			t.keys[depth] = text[s.start:s.end]
		}
		return
	}
	t.spans = append(t.spans, s)
	if !inObject || depth >= len(t.keys) || bytes.IndexByte(t.stack, '[') >= 0 {
		return
	}
	if column, ok := t.columnAt(depth); ok {
		t.values[column] = text[s.start:s.end]
		if s.escaped {
			t.values[column], _ = jsontext.AppendUnquote(nil, text[s.start-1:s.end+1])
		}
	}
}

// columnAt returns the column of the value at the keys down to a depth.
func (t *template) columnAt(depth int) (Column, bool) {
	at := func(depths int, path ...string) bool {
		for i, key := range path {
			if string(t.keys[i+1]) != key {
				return false
			}
		}
		return depth == depths
	}
	switch {
	case at(2, "metadata", "name"):
		return Name, true
	case at(2, "metadata", "namespace"):
		return Namespace, true
	case at(2, "metadata", "uid"):
		return UID, true
	case at(2, "spec", "nodeName"):
		return Node, true
	case at(2, "spec", "volumeName"), at(3, "spec", "claimRef", "name"):
		return Other, true
	case at(3, "spec", "claimRef", "namespace"):
		return Scope, true
	}
	return 0, false
}

// findToken takes the random end of the name of a token's volume, if the column is free.
func (t *template) findToken(text []byte) {
	if len(t.values[Other]) > 0 {
		return
	}
	for _, s := range t.spans {
		if suffix, ok := bytes.CutPrefix(text[s.start:s.end], []byte(TokenVolume)); ok && !s.escaped && len(suffix) > 0 {
			t.values[Other] = suffix
			return
		}
	}
}

// replace returns which column stands for a string, and the length of what is before it.
func (t *template) replace(value []byte) (keep int, column Column, found bool) {
	if suffix, ok := bytes.CutPrefix(value, []byte(TokenVolume)); ok {
		return len(TokenVolume), Other, len(suffix) > 0 && bytes.Equal(suffix, t.values[Other])
	}
	for c := range columns {
		if bytes.Equal(value, t.values[c]) {
			return 0, c, true
		}
	}
	// The claims of a StatefulSet are named after their pods.
	if before, ok := bytes.CutSuffix(value, t.values[Name]); ok && len(t.values[Name]) > 0 && bytes.HasSuffix(before, []byte("-")) {
		return len(before), Name, true
	}
	return 0, 0, false
}
