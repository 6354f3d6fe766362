// Package strictjson decodes JSON that all parsers read in the same way, and says in words for people
// what is wrong with other JSON: the decoder's own words change from one process to the next on purpose, and speak of Go.
//
// Evidence and requests come from machines that are not trusted yet. Parsers of JSON
// differ in how they treat a duplicate key, a key in another case, or data after the
// end. Such a document could pass a check in one parser and be used by another. Here
// it is an error.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DefaultMaxDepth is the default of [Options].MaxDepth.
const DefaultMaxDepth = 16

// Options are options for decoding.
type Options struct {
	// AllowUnknown ignores keys that the type has no field for. Otherwise they are
	// errors.
	AllowUnknown bool
	// MaxDepth is the maximum nesting of objects and lists; a flat object has depth
	// 1. Zero is [DefaultMaxDepth].
	MaxDepth int
}

// Unmarshal decodes one JSON document. Errors name the field and the mistake: a
// duplicate key, a key that names a field in another case, an unknown key, nesting
// that is too deep, text that is not UTF-8, and data after the document. The value of
// into is undefined after an error.
func Unmarshal(data []byte, into any, opts Options) error {
	s := begin(data, opts)
	if err := s.value(reflect.TypeOf(into)); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return Explain(err)
	}
	return nil
}

// walk reads a document once, alongside the type that it will be decoded into.
type walk struct {
	decoder *jsontext.Decoder
	opts    Options
	// structs caches the fields of struct types.
	structs map[reflect.Type][]field
}

func begin(data []byte, opts Options) *walk {
	if opts.MaxDepth == 0 {
		opts.MaxDepth = DefaultMaxDepth
	}
	return &walk{decoder: jsontext.NewDecoder(bytes.NewBuffer(data)), opts: opts}
}

// end returns an error if data follows the document.
func (s *walk) end() error {
	_, err := s.decoder.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("not valid JSON: text follows the document")
	}
	return malformed(err)
}

// value walks the next value. The type is nil for values without a field, and for
// types that decode themselves.
func (s *walk) value(t reflect.Type) error {
	t = plain(t)
	token, err := s.decoder.ReadToken()
	if err != nil {
		return malformed(err)
	}
	kind := token.Kind()
	if kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return nil
	}
	if s.decoder.StackDepth() > s.opts.MaxDepth {
		return fmt.Errorf("nested more than %d deep", s.opts.MaxDepth)
	}
	for {
		switch s.decoder.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray:
			if _, err := s.decoder.ReadToken(); err != nil {
				return malformed(err)
			}
			return nil
		}
		element := elementOf(t)
		if kind == jsontext.KindBeginObject {
			if element, err = s.key(t); err != nil {
				return err
			}
		}
		if err := s.value(element); err != nil {
			return err
		}
	}
}

// key reads a key of an object and returns the type of its value.
func (s *walk) key(object reflect.Type) (reflect.Type, error) {
	token, err := s.decoder.ReadToken()
	if err != nil {
		return nil, malformed(err)
	}
	if object == nil || object.Kind() != reflect.Struct {
		return elementOf(object), nil
	}
	fields, met := s.structs[object]
	if !met {
		if s.structs == nil {
			s.structs = map[reflect.Type][]field{}
		}
		fields = fieldsOf(object)
		s.structs[object] = fields
	}
	key := token.String()
	i, similar := find(fields, key)
	if i < 0 {
		return nil, s.unknownKey(key, similar)
	}
	return fields[i].value, nil
}

// unknownKey handles a key that names no field.
func (s *walk) unknownKey(key, similar string) error {
	switch {
	case similar != "":
		return fmt.Errorf("%s: the key is written %q", s.path(similar), Clipped(key))
	case !s.opts.AllowUnknown:
		return fmt.Errorf("%s: there is no such field", s.path(Clipped(key)))
	}
	return nil
}

// path returns the path of the field that a key should have named.
func (s *walk) path(field string) string {
	pointer := s.decoder.StackPointer().Parent()
	return FieldPath(pointer.AppendToken(field))
}

// malformed returns the error for text that is not JSON, or not strict JSON.
func malformed(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("not valid JSON: there is no text")
	}
	return Explain(err)
}
