package manifest

import (
	"bytes"
	"encoding/binary"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions below find where JSON values end, without looking into them:
// whether a value is well-formed is left to whoever decodes it. Each takes text
// and a position in it, and returns a position, or -1 if the text ends before.

func skipSpace(b []byte, p int) int {
	for ; p < len(b); p++ {
		if c := b[p]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return p
		}
	}
	return -1
}

// skipString finds the end of the string that begins at p with its quote.
func skipString(b []byte, p int) int {
	for p++; p < len(b); p++ {
		n := bytes.IndexByte(b[p:], '"')
		if n < 0 {
			return -1
		}
		p += n
		escapes := 0
		for b[p-1-escapes] == '\\' {
			escapes++ // ends at the opening quote at the latest
		}
		if escapes%2 == 0 {
			return p + 1
		}
	}
	return -1
}

// skipValue finds the end of the value that begins at p.
func skipValue(b []byte, p int) int {
	if p >= len(b) {
		return -1
	}
	switch b[p] {
	case '"':
		return skipString(b, p)
	case '{', '[':
		return skipContainer(b, p)
	}
	for ; p < len(b); p++ {
		switch b[p] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return p
		}
	}
	return -1
}

// skipContainer finds the end of the object or array that begins at p. Braces
// and brackets are not told apart.
func skipContainer(b []byte, p int) int {
	const spaces = 0x2020202020202020
	depth := 0
	for p < len(b) {
		switch b[p] {
		case '\n': // indentation is most of what kubectl prints
			p++
			for p+8 <= len(b) && binary.LittleEndian.Uint64(b[p:]) == spaces {
				p += 8
			}
			continue
		case '"':
			if p = skipString(b, p); p < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return p + 1
			}
		}
		p++
	}
	return -1
}

// member is one name and value of a JSON object, as positions in the text.
type member struct {
	name       []byte
	start, end int // of the value
}

// nextMember reads the member at or after p, where p is behind the opening
// brace or behind another member. It returns false at the end of the object,
// and where the text is not well-formed.
func nextMember(b []byte, p int) (member, bool) {
	p = skipSpace(b, p)
	if p >= 0 && b[p] == ',' {
		p = skipSpace(b, p+1)
	}
	if p < 0 || b[p] != '"' {
		return member{}, false
	}
	end := skipString(b, p)
	if end < 0 {
		return member{}, false
	}
	m := member{name: unquote(b[p:end])}
	if p = skipSpace(b, end); p < 0 || b[p] != ':' {
		return member{}, false
	}
	if m.start = skipSpace(b, p+1); m.start < 0 {
		return member{}, false
	}
	if m.end = skipValue(b, m.start); m.end < 0 {
		return member{}, false
	}
	return m, true
}

// readType finds apiVersion and kind at the top of an object. What is not there
// or not a string stays empty.
func readType(b []byte) Type {
	var h Type
	p := skipSpace(b, 0)
	if p < 0 || b[p] != '{' {
		return h
	}
	for m, ok := nextMember(b, p+1); ok && (h.APIVersion == "" || h.Kind == ""); m, ok = nextMember(b, m.end) {
		h.take(m.name, b[m.start:m.end])
	}
	return h
}

// take looks at one member of an object.
func (h *Type) take(name, value []byte) {
	if len(value) == 0 || value[0] != '"' {
		return
	}
	switch string(name) {
	case "apiVersion":
		h.APIVersion = string(unquote(value))
	case "kind":
		h.Kind = string(unquote(value))
	}
}

// unquote returns what a JSON string says; of a malformed one, what it can.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return bytes.Trim(quoted, `"`)
	}
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}

func countLines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }
