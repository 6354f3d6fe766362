package noderestriction

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// difference returns the operations of a JSON patch that lead from one object to another.
func difference(from, to any) []verdict.Change {
	return appendDifference(nil, "", decoded(from), decoded(to))
}

func decoded(object any) (value any) {
	d := json.NewDecoder(bytes.NewReader(encoded(object)))
	d.UseNumber() // keeps all digits
	if err := d.Decode(&value); err != nil {
		panic("noderestriction: an object cannot be decoded: " + err.Error()) // it was just encoded
	}
	return value
}

func appendDifference(all []verdict.Change, path string, from, to any) []verdict.Change {
	if reflect.DeepEqual(from, to) {
		return all
	}
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			return appendFields(all, path, from, to)
		}
	case []any:
		if to, ok := to.([]any); ok {
			return appendEntries(all, path, from, to)
		}
	}
	return append(all, verdict.Change{Op: verdict.Replace, Path: path, Value: encoded(to)})
}

func appendFields(all []verdict.Change, path string, from, to map[string]any) []verdict.Change {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		field := path + "/" + escaped(key)
		if value, ok := to[key]; ok {
			all = appendDifference(all, field, from[key], value)
		} else {
			all = append(all, verdict.Change{Op: verdict.Remove, Path: field})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if _, ok := from[key]; !ok {
			all = append(all, verdict.Change{Op: verdict.Add, Path: path + "/" + escaped(key), Value: encoded(to[key])})
		}
	}
	return all
}

// appendEntries compares lists of one length entry by entry. Entries that are only removed are
// removed from the end, so that the positions of the others stay.
func appendEntries(all []verdict.Change, path string, from, to []any) []verdict.Change {
	if len(from) == len(to) {
		for i := range from {
			all = appendDifference(all, path+"/"+strconv.Itoa(i), from[i], to[i])
		}
		return all
	}
	removed, rest := []int(nil), to
	for i, entry := range from {
		if len(rest) > 0 && reflect.DeepEqual(entry, rest[0]) {
			rest = rest[1:]
		} else {
			removed = append(removed, i)
		}
	}
	if len(rest) > 0 {
		return append(all, verdict.Change{Op: verdict.Replace, Path: path, Value: encoded(to)})
	}
	for _, i := range slices.Backward(removed) {
		all = append(all, verdict.Change{Op: verdict.Remove, Path: path + "/" + strconv.Itoa(i)})
	}
	return all
}

// escaped returns a key as part of a JSON pointer (RFC 6901, section 3).
func escaped(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
