package source

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// plain says in words for people what a JSON decoder found wrong, without the
// place, which the caller knows better.
func plain(err error) error {
	var semantic *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("a field is given twice")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not valid JSON: text ends in the middle of an object")
	case errors.As(err, &syntax) && syntax.Err != nil:
		return fmt.Errorf("not valid JSON: %w", syntax.Err)
	case errors.As(err, &semantic) && semantic.GoType != nil && semantic.JSONKind != 0:
		if semantic.Err != nil {
			return semantic.Err
		}
		return fmt.Errorf("want %s, got %s", goNoun(semantic.GoType), jsonNoun(semantic.JSONKind))
	}
	return err
}

func goNoun(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return goNoun(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

func jsonNoun(k jsontext.Kind) string {
	switch k {
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "true or false"
	case jsontext.KindNull:
		return "null"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindBeginObject:
		return "an object"
	}
	return "nothing that is JSON"
}
