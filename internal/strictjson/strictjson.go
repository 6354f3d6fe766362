// Package strictjson decodes JSON that means one thing only, whoever reads it.
//
// Evidence and requests come from machines that nobody trusts yet, and readers of
// JSON differ in what they make of a key that is there twice, of a key in another
// case, or of what follows the end. Such a document could pass a check in one
// reading and be used in another. Here it is no document at all.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// DefaultMaxDepth is how deep objects and lists may be nested if the options do
// not say it.
const DefaultMaxDepth = 16

// Options say how strict decoding is.
type Options struct {
	// AllowUnknown ignores keys that the type has no field for. Without it they
	// are errors.
	AllowUnknown bool
	// MaxDepth is how deep objects and lists may be nested; a plain object has
	// depth 1. Zero is [DefaultMaxDepth].
	MaxDepth int
}

// Unmarshal decodes one JSON document. A key that is given twice, a key that
// names a field in another case, an unknown key, nesting that is too deep, text
// that is not UTF-8, and anything after the document are errors, which say what
// is wrong in which field. What into holds after an error is of no use.
func Unmarshal(data []byte, into any, opts Options) error {
	s := begin(data, opts)
	if err := s.value(reflect.TypeOf(into)); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return badjson.Explain(err)
	}
	return nil
}

// survey goes once through a document, beside the type that it will be decoded
// into.
type survey struct {
	decoder *jsontext.Decoder
	opts    Options
	// structs are the fields of the structs that were met.
	structs map[reflect.Type][]field
}

func begin(data []byte, opts Options) *survey {
	if opts.MaxDepth == 0 {
		opts.MaxDepth = DefaultMaxDepth
	}
	return &survey{decoder: jsontext.NewDecoder(bytes.NewBuffer(data)), opts: opts}
}

// end makes sure that nothing follows.
func (s *survey) end() error {
	_, err := s.decoder.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("not valid JSON: text goes on after the document")
	}
	return malformed(err)
}

// value goes through the next value. The type is nil for values that no field
// takes, and for those of types that decode themselves.
func (s *survey) value(t reflect.Type) error {
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
func (s *survey) key(object reflect.Type) (reflect.Type, error) {
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
	i, similar := find(fields, func(f *field) string { return f.name }, key)
	if i < 0 {
		return nil, s.stranger(key, similar)
	}
	return fields[i].value, nil
}

// stranger judges a key that names no field.
func (s *survey) stranger(key, similar string) error {
	switch {
	case similar != "":
		return fmt.Errorf("%s: the key is written %q", s.path(similar), clipped(key))
	case !s.opts.AllowUnknown:
		return fmt.Errorf("%s: there is no such field", s.path(clipped(key)))
	}
	return nil
}

// path is that of the field which a key should have named.
func (s *survey) path(field string) string {
	pointer := s.decoder.StackPointer().Parent()
	return badjson.FieldPath(pointer.AppendToken(field))
}

// clipped keeps what strangers write short.
func clipped(key string) string {
	const limit = 40
	if len(key) <= limit {
		return key
	}
	return strings.ToValidUTF8(key[:limit], "") + "…"
}

// malformed says what is wrong with text that is not JSON, or not strictly.
func malformed(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax) {
		return fmt.Errorf("%s: %w", badjson.FieldPath(jsontext.Pointer(clipped(string(syntax.JSONPointer)))), badjson.What(err))
	}
	if errors.Is(err, io.EOF) {
		return errors.New("not valid JSON: there is no text")
	}
	return badjson.What(err)
}
