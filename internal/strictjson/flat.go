package strictjson

import (
	"slices"
	"strings"
)

// flat decodes the simplest objects: strings of printable ASCII without escapes, and
// null. It is for speed only. It returns false for all other objects and for all
// mistakes, which [Strings] then handles.
func flat(data []byte, fields []StringField, opts Options) bool {
	o := flatObject{scanner: scanner{text: string(data)}, fields: fields, values: make([]flatValue, len(fields))}
	if !opts.AllowUnknown || !o.byte('{') {
		return false
	}
	for first := true; !o.byte('}'); first = false {
		if !first && !o.byte(',') || !o.pair() {
			return false
		}
	}
	if o.blank(); o.at != len(o.text) {
		return false
	}
	for i, f := range fields {
		if o.values[i].given {
			*f.Value = o.values[i].text
		}
	}
	return true
}

// flatObject is an object that is being decoded.
type flatObject struct {
	scanner
	fields []StringField
	values []flatValue
	// unknown are keys that name no field. Their number is bounded, because
	// duplicates are found by a linear search.
	unknown [16]string
	met     int
}

// flatValue is the value of a field: whether its key was present, and whether it is a
// string.
type flatValue struct {
	text       string
	met, given bool
}

// pair reads a key and its value.
func (o *flatObject) pair() bool {
	key, ok := o.string()
	if !ok || !o.byte(':') {
		return false
	}
	i := slices.IndexFunc(o.fields, func(f StringField) bool { return f.Name == key })
	if i < 0 {
		return o.unknownKey(key)
	}
	v := &o.values[i]
	if v.met {
		return false
	}
	v.met = true
	v.text, v.given = o.string()
	return v.given || o.null()
}

// unknownKey reads the value of a key that names no field.
func (o *flatObject) unknownKey(key string) bool {
	similar := func(f StringField) bool { return strings.EqualFold(f.Name, key) }
	if o.met == len(o.unknown) || slices.Contains(o.unknown[:o.met], key) || slices.ContainsFunc(o.fields, similar) {
		return false
	}
	o.unknown[o.met] = key
	o.met++
	_, ok := o.string()
	return ok || o.null()
}

// scanner reads tokens, each after blank space.
type scanner struct {
	text string
	at   int
}

func (s *scanner) blank() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\n', '\r', '\t':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) byte(b byte) bool {
	s.blank()
	if s.at == len(s.text) || s.text[s.at] != b {
		return false
	}
	s.at++
	return true
}

func (s *scanner) null() bool {
	s.blank()
	if !strings.HasPrefix(s.text[s.at:], "null") {
		return false
	}
	s.at += len("null")
	return true
}

// string reads a string without escapes.
func (s *scanner) string() (string, bool) {
	if !s.byte('"') {
		return "", false
	}
	for end := s.at; end < len(s.text); end++ {
		switch c := s.text[end]; {
		case c == '"':
			value := s.text[s.at:end]
			s.at = end + 1
			return value, true
		case c < ' ', c > '~', c == '\\':
			return "", false
		}
	}
	return "", false
}
