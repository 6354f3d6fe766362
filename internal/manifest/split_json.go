package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// jsonSplitter splits a stream of JSON documents into objects: each document, or each
// item of a list, so that a list of any size is streamed. It checks only what it
// needs to find the boundaries.
type jsonSplitter struct {
	*window
	file   string
	number int
	emit   func(*document) error
}

// split reads to the end of the stream. It returns false if it stopped before,
// at a document that is not JSON.
func (s *jsonSplitter) split() (done bool, err error) {
	for {
		p, err := s.space(0)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, s.readError(err)
		}
		s.advance(p)
		if s.skipSeparator() {
			continue
		}
		if c := s.data()[0]; c != '{' {
			if s.number > 0 && !strings.ContainsRune(`}],["`, rune(c)) {
				return false, nil // the remaining text is YAML
			}
			s.number++
			return false, s.fail(0, fmt.Errorf("want an object, got %s", describe(c)))
		}
		s.number++
		if err := s.document(); err != nil {
			return false, err
		}
	}
}

// skipSeparator accepts the line that separates documents in YAML.
func (s *jsonSplitter) skipSeparator() bool {
	if !s.startsWith("---") {
		return false
	}
	s.advance(3)
	return true
}

// document handles the object at the beginning of the window.
func (s *jsonSplitter) document() error {
	var h Type
	p := 1
	for first := true; ; first = false {
		name, value, end, err := s.member(p, first)
		if err != nil {
			return err
		}
		if end {
			d := s.newDocument(value)
			err := s.emit(d)
			s.advance(value)
			return err
		}
		if s.data()[value] == '[' && name == "items" && (h.Kind == "" || h.isList()) {
			s.advance(value)
			return s.list(h)
		}
		if p, err = s.value(value); err != nil {
			return err
		}
		h.set(name, s.data()[value:p])
	}
}

// member reads the name of a member of the object, if it is a known one, and finds
// where its value begins. At the end of the object, value is the position after it.
func (s *jsonSplitter) member(p int, first bool) (name string, value int, end bool, err error) {
	if p, err = s.punctuation(p); err != nil {
		return "", 0, false, err
	}
	switch c := s.data()[p]; {
	case c == '}':
		return "", p + 1, true, nil
	case c == ',' && !first:
		if p, err = s.punctuation(p + 1); err != nil {
			return "", 0, false, err
		}
	case !first:
		return "", 0, false, s.fail(p, fmt.Errorf("want a comma or the end of the object, got %s", describe(c)))
	}
	if c := s.data()[p]; c != '"' {
		return "", 0, false, s.fail(p, fmt.Errorf("want a field name in double quotes, got %s", describe(c)))
	}
	q, err := s.window.value(p)
	if err != nil {
		return "", 0, false, s.incomplete(err)
	}
	name = known(unquote(s.data()[p:q]))
	if q, err = s.punctuation(q); err != nil {
		return "", 0, false, err
	}
	if c := s.data()[q]; c != ':' {
		return "", 0, false, s.fail(q, fmt.Errorf("want a colon after the field name, got %s", describe(c)))
	}
	value, err = s.punctuation(q + 1)
	return name, value, false, err
}

// known returns a known member name as a string that does not refer to the text;
// empty for other names.
func known(name []byte) string {
	switch string(name) {
	case "apiVersion":
		return "apiVersion"
	case "kind":
		return "kind"
	case "items":
		return "items"
	}
	return ""
}

// punctuation returns the next byte that is not space.
func (s *jsonSplitter) punctuation(p int) (int, error) {
	p, err := s.space(p)
	if err != nil {
		return 0, s.incomplete(err)
	}
	return p, nil
}

func (s *jsonSplitter) value(p int) (int, error) {
	q, err := s.window.value(p)
	if err != nil {
		return 0, s.incomplete(err)
	}
	if q == p {
		return 0, s.fail(p, fmt.Errorf("want a value, got %s", describe(s.data()[p])))
	}
	return q, nil
}

// list emits the items of the array at the beginning of the window, and reads the
// members that follow them in the list object.
func (s *jsonSplitter) list(h Type) error {
	if err := s.items(h); err != nil {
		return err
	}
	for {
		// The window begins after a value of the list object.
		name, value, end, err := s.member(0, false)
		if err != nil {
			return err
		}
		if end {
			s.advance(value)
			break
		}
		s.advance(value)
		p, err := s.value(0)
		if err != nil {
			return err
		}
		h.set(name, s.data()[:p])
		s.advance(p)
	}
	if !h.isList() {
		return s.fail(0, fmt.Errorf("document has items but its kind is %q, which is not a list", h.Kind))
	}
	return nil
}

func (s *jsonSplitter) items(h Type) error {
	s.advance(1)
	for item := 1; ; item++ {
		p, err := s.punctuation(0)
		if err != nil {
			return err
		}
		c := s.data()[p]
		if c == ']' && item == 1 {
			s.advance(p + 1)
			return nil
		}
		if c != '{' {
			return s.fail(p, fmt.Errorf("want an object as item %d of the list, got %s", item, describe(c)))
		}
		s.advance(p)
		end, err := s.value(0)
		if err != nil {
			return err
		}
		d := s.newDocument(end)
		d.item, d.list = item, h
		if err := s.emit(d); err != nil {
			return err
		}
		if p, err = s.punctuation(end); err != nil {
			return err
		}
		switch c := s.data()[p]; c {
		case ',':
			s.advance(p + 1)
		case ']':
			s.advance(p + 1)
			return nil
		default:
			return s.fail(p, fmt.Errorf("want a comma or the end of the list after item %d, got %s", item, describe(c)))
		}
	}
}

// cut returns the first n bytes of the window as a document. Its text is valid until
// more is read.
func (s *jsonSplitter) newDocument(n int) *document {
	return &document{file: s.file, number: s.number, line: s.line, text: s.data()[:n]}
}

// fail makes an error at position p of the window.
func (s *jsonSplitter) fail(p int, err error) error {
	return s.newDocument(len(s.data())).errorAt(p, err)
}

// incomplete explains why the object at the beginning of the window does not end. A
// missing brace shows only at the end of the file; the first malformed position is
// more helpful.
func (s *jsonSplitter) incomplete(err error) error {
	if isReadError(err) {
		return s.readError(err)
	}
	text := s.data()
	var syntax *jsontext.SyntacticError
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if _, invalid := dec.ReadValue(); errors.As(invalid, &syntax) && !errors.Is(invalid, io.ErrUnexpectedEOF) {
		return s.fail(int(syntax.ByteOffset), badjson.What(syntax))
	}
	if errors.Is(err, errTooLarge) {
		return s.fail(0, err)
	}
	return s.fail(len(text), errors.New("file ends in the middle of the document"))
}

func (s *jsonSplitter) readError(err error) error {
	return &Error{File: s.file, Position: Position{Line: s.line}, Err: fmt.Errorf("read: %w", err)}
}

func describe(c byte) string {
	switch c {
	case '[':
		return "an array"
	case '{':
		return "an object"
	case '"':
		return "a string"
	}
	return fmt.Sprintf("%q", c)
}
