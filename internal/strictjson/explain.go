package strictjson

import (
	encodingjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Explain says what is wrong and in which field, if in one: "spec.user: want a
// string, got a number".
func Explain(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax) && syntax.JSONPointer != "" {
		var path jsontext.Pointer
		for name := range syntax.JSONPointer.Tokens() {
			path = path.AppendToken(Clipped(name))
		}
		return fmt.Errorf("%s: %w", FieldPath(path), ExplainWithoutPlace(err))
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer != "" {
		return fmt.Errorf("%s: %w", FieldPath(semantic.JSONPointer), ExplainWithoutPlace(semantic))
	}
	if typed, ok := errors.AsType[*encodingjson.UnmarshalTypeError](err); ok && typed.Field != "" {
		return fmt.Errorf("%s: %w", typed.Field, ExplainWithoutPlace(typed))
	}
	return ExplainWithoutPlace(err)
}

// What returns the mistake without its place, for callers that know the place better.
func ExplainWithoutPlace(err error) error {
	var semantic *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("a field is given twice")
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not valid JSON: text ends in the middle of an object")
	case errors.As(err, &syntax) && syntax.Err != nil:
		return fmt.Errorf("not valid JSON: %w", syntax.Err)
	case errors.As(err, &semantic) && isSemantic(semantic.Err):
		return ExplainWithoutPlace(semantic.Err)
	case errors.As(err, &semantic) && semantic.GoType != nil && (semantic.JSONKind != 0 || semantic.Err != nil):
		if semantic.Err != nil {
			return semantic.Err
		}
		return fmt.Errorf("want %s, got %s", goNoun(semantic.GoType), KindNoun(semantic.JSONKind))
	}
	return whatStandard(err)
}

// whatStandard says what is wrong by errors of encoding/json, which other decoders return too.
func whatStandard(err error) error {
	if typed, ok := errors.AsType[*encodingjson.UnmarshalTypeError](err); ok {
		return fmt.Errorf("want %s, got %s", goNoun(typed.Type), standardNoun(typed.Value))
	}
	if syntax, ok := errors.AsType[*encodingjson.SyntaxError](err); ok {
		return fmt.Errorf("not valid JSON: %w", syntax)
	}
	return err
}

// isSemantic reports whether the cause of an error says itself what is wrong.
func isSemantic(err error) bool {
	_, ok := errors.AsType[*json.SemanticError](err)
	return ok
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

// KindNoun names a kind of JSON value: "a number".
func KindNoun(k jsontext.Kind) string {
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

// standardNoun names a value as encoding/json describes it, such as "array" or "number 1.5".
func standardNoun(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	switch kind {
	case "bool":
		return KindNoun(jsontext.KindTrue)
	case "array":
		return KindNoun(jsontext.KindBeginArray)
	case "object":
		return KindNoun(jsontext.KindBeginObject)
	}
	return "a " + kind
}

// FieldPath writes a pointer as Kubernetes writes paths:
// "spec.containers[0].name".
func FieldPath(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
		switch {
		case token != "" && strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		case strings.ContainsAny(token, "./"):
			b.WriteString("[" + token + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(token)
		}
	}
	return b.String()
}

// Clipped shortens names from untrusted documents for error messages.
func Clipped(name string) string {
	const limit = 40
	if len(name) <= limit {
		return name
	}
	return strings.ToValidUTF8(name[:limit], "") + "…"
}
