// Package oddjson puts values that a decoder does not expect at each place of a document, for tests of decoders.
// The places come from the Go type of the document, so that none is forgotten.
package oddjson

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
)

// Place is a path to a value: the names of members, and [Entry] for the entry of a list.
type Place []string

// Entry is the step into a list.
const Entry = "[0]"

// member is the step into a map.
const member = "a"

func (p Place) String() string { return strings.ReplaceAll(strings.Join(p, "."), "."+Entry, Entry) }

// Places returns each place of documents of the type of a value: each field, each list and its entry, each map and its
// member.
func Places(of any) []Place {
	return walk(nil, reflect.TypeOf(of), nil)
}

// Below returns the places within a value at a path, and the place of the value.
func Below(places []Place, path ...string) []Place {
	below := []Place{path}
	for _, p := range places {
		below = append(below, slices.Concat(path, p))
	}
	return below
}

// walk returns the places within a value of type t. The types of which it is a part end a recursion.
func walk(at Place, t reflect.Type, within []reflect.Type) (places []Place) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if decodesItself(t) || slices.Contains(within, t) {
		return nil
	}
	within = append(slices.Clip(within), t)
	into := func(step string, t reflect.Type) {
		next := append(slices.Clip(at), step)
		places = append(append(places, next), walk(next, t, within)...)
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			into(Entry, t.Elem())
		}
	case reflect.Map:
		into(member, t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported() && !f.Anonymous:
			case name == "" && f.Anonymous:
				places = append(places, walk(at, f.Type, within)...)
			case name == "":
				into(f.Name, f.Type)
			default:
				into(name, f.Type)
			}
		}
	}
	return places
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[json2.UnmarshalerFrom]())
}

// values returns odd values. The last stands for a value that is missing.
func values() []string {
	return []string{
		`null`, `true`, `-1`, `0.5`, `1e999`, `-9223372036854775809`, `18446744073709551616`,
		`""`, `"a"`, `"\ud800"`, `"\udc00\ud800"`, "\"\xff\"",
		`[]`, `[null]`, `[[null],{}]`, `["a",1]`,
		`{}`, `{"a":null}`, `{"a":{"a":[null]}}`, `{"a":1,"a":2}`,
		``,
	}
}

// Documents returns a document for each odd value at each place of a base. Parts of a place that the base does not have are
// added. Names of documents say place and value.
func Documents(base string, places []Place) iter.Seq2[string, []byte] {
	whole := decoded(base)
	return func(yield func(string, []byte) bool) {
		for _, place := range places {
			for _, value := range values() {
				if !yield(fmt.Sprintf("%s=%s", place, value), document(whole, place, value)) {
					return
				}
			}
		}
	}
}

// Seeds returns one document for each place, each with the next value: a fuzzer runs some hundred seeds a second.
func Seeds(base string, places []Place) iter.Seq[[]byte] {
	whole, values := decoded(base), values()
	return func(yield func([]byte) bool) {
		for i, place := range places {
			if !yield(document(whole, place, values[i%len(values)])) {
				return
			}
		}
	}
}

func decoded(base string) (whole any) {
	if err := json.Unmarshal([]byte(base), &whole); err != nil {
		panic(fmt.Sprintf("%s: %v", base, err))
	}
	return whole
}

func document(whole any, place Place, value string) []byte {
	text, err := json.Marshal(put(whole, place, value))
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", place, value, err))
	}
	return text
}

// put returns a node of a document with a value at a place.
func put(node any, at Place, value string) any {
	if len(at) == 0 {
		return json.RawMessage(value)
	}
	step, rest := at[0], at[1:]
	missing := len(rest) == 0 && value == ""
	if step == Entry {
		list, _ := node.([]any)
		if missing {
			return []any{}
		}
		var first any
		if len(list) > 0 {
			first = list[0]
		}
		return append([]any{put(first, rest, value)}, list[min(1, len(list)):]...)
	}
	object, _ := node.(map[string]any)
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	if missing {
		delete(object, step)
		return object
	}
	object[step] = put(object[step], rest, value)
	return object
}
