// Package oddjson puts values that a decoder does not expect at each place of a document, for tests of decoders.
// The places are those of the Go type of the document, so that none is forgotten.
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

// Place is a path to a value: the names of members, and [entry] for the entry of a list.
type Place []string

// entry is the step into a list, and member the step into a map.
const (
	entry  = "[0]"
	member = "a"
)

func (p Place) String() string { return strings.ReplaceAll(strings.Join(p, "."), "."+entry, entry) }

// Places returns each place of documents of the type of a value: each field, each list and its entry, each map and its
// member.
func Places(of any) []Place {
	return walk(nil, reflect.TypeOf(of), func(t reflect.Type, within []reflect.Type) bool { return slices.Contains(within, t) })
}

// Fields returns the places of which each field of each type is the first: less than a tenth of the places of a pod.
func Fields(of any) []Place {
	seen := map[reflect.Type]bool{}
	return walk(nil, reflect.TypeOf(of), func(t reflect.Type, _ []reflect.Type) bool {
		known := seen[t]
		seen[t] = known || t.Kind() == reflect.Struct
		return known
	})
}

// Below returns the places within a value at a path, and that of the value.
func Below(places []Place, path ...string) []Place {
	below := []Place{path}
	for _, p := range places {
		below = append(below, slices.Concat(path, p))
	}
	return below
}

// walk returns the places within a value of type t, but none within types that are skipped. These are told of which
// types the value is a part.
func walk(at Place, t reflect.Type, skip func(reflect.Type, []reflect.Type) bool, within ...reflect.Type) (places []Place) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if decodesItself(t) || skip(t, within) {
		return nil
	}
	within = append(slices.Clip(within), t)
	into := func(step string, t reflect.Type) {
		next := append(slices.Clip(at), step)
		places = append(append(places, next), walk(next, t, skip, within...)...)
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			into(entry, t.Elem())
		}
	case reflect.Map:
		into(member, t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported() && !f.Anonymous:
			case name == "" && f.Anonymous:
				places = append(places, walk(at, f.Type, skip, within...)...)
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
	var whole any
	if err := json.Unmarshal([]byte(base), &whole); err != nil {
		panic(fmt.Sprintf("%s: %v", base, err))
	}
	return func(yield func(string, []byte) bool) {
		for _, place := range places {
			for _, value := range values() {
				document, err := json.Marshal(put(whole, place, value))
				if err != nil {
					panic(fmt.Sprintf("%s=%s: %v", place, value, err))
				}
				if !yield(fmt.Sprintf("%s=%s", place, value), document) {
					return
				}
			}
		}
	}
}

// put returns a node of a document with a value at a place.
func put(node any, at Place, value string) any {
	if len(at) == 0 {
		return json.RawMessage(value)
	}
	step, rest := at[0], at[1:]
	missing := len(rest) == 0 && value == ""
	if step == entry {
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
