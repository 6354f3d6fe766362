package strictjson

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// StringField is a field whose value is a string, and where the value is stored.
type StringField struct {
	Name  string
	Value *string
}

// Strings decodes an object with string fields only. It is as strict as [Unmarshal]
// and several times as fast. A field that is missing or null is left unchanged.
func Strings(data []byte, fields []StringField, opts Options) error {
	if flat(data, fields, opts) {
		return nil
	}
	s := begin(data, opts)
	token, err := s.decoder.ReadToken()
	if err != nil {
		return malformed(err)
	}
	if kind := token.Kind(); kind != jsontext.KindBeginObject {
		return fmt.Errorf("want an object, got %s", badjson.KindNoun(kind))
	}
	for s.decoder.PeekKind() != jsontext.KindEndObject {
		if err := s.stringField(fields); err != nil {
			return err
		}
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return malformed(err)
	}
	return s.end()
}

// stringField reads a key and its value.
func (s *walk) stringField(fields []StringField) error {
	token, err := s.decoder.ReadToken()
	if err != nil {
		return malformed(err)
	}
	key := token.String()
	i, similar := find(fields, func(f *StringField) string { return f.Name }, key)
	if i < 0 {
		if err := s.unknownKey(key, similar); err != nil {
			return err
		}
		return s.value(nil)
	}
	if token, err = s.decoder.ReadToken(); err != nil {
		return malformed(err)
	}
	switch kind := token.Kind(); kind {
	case jsontext.KindString:
		*fields[i].Value = token.String()
	case jsontext.KindNull:
	default:
		return errors.New(s.path(key) + ": want a string, got " + badjson.KindNoun(kind))
	}
	return nil
}
