package manifest

import (
	"bytes"
	"encoding/binary"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions below find where JSON values end, without validating them: their
// decoders do that. Each takes text and a position in it, and returns a position, or
// -1 if the text ends before.

func skipSpace(b []byte, p int) int {
	for ; p < len(b); p++ {
		if c := b[p]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return p
		}
	}
	return -1
}

// skipString returns the end of the string whose opening quote is at p.
func skipString(b []byte, p int) int { return (&scan{begin: p, at: p}).end(b) }

// skipValue returns the end of the value that begins at p.
func skipValue(b []byte, p int) int { return (&scan{begin: p, at: p}).end(b) }

// scan finds the end of a value, and resumes where it stopped when there is more
// text. So its effort is proportional to the length of the text, for any number of
// parts.
type scan struct {
	begin int // of the value
	at    int // up to where the text has been scanned
	depth int // of the objects and arrays that are open at that position
	// quoted is whether that position is within a string.
	quoted bool
}

// end returns where the value ends, or -1 if the text ends before.
func (s *scan) end(b []byte) int {
	if s.begin >= len(b) {
		return -1
	}
	switch b[s.begin] {
	case '"':
		s.at = max(s.at, s.begin+1)
		return s.string(b)
	case '{', '[':
		return s.container(b)
	}
	for ; s.at < len(b); s.at++ {
		switch b[s.at] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return s.at
		}
	}
	return -1
}

// string returns the end of the current string.
func (s *scan) string(b []byte) int {
	for {
		n := bytes.IndexByte(b[s.at:], '"')
		if n < 0 {
			s.at = len(b)
			return -1
		}
		quote := s.at + n
		s.at = quote + 1
		escapes := 0
		for b[quote-1-escapes] == '\\' {
			escapes++ // ends at the opening quote at the latest
		}
		if escapes%2 == 0 {
			return s.at
		}
	}
}

// container returns the end of the object or array. It does not distinguish braces
// from brackets.
func (s *scan) container(b []byte) int {
	const spaces = 0x2020202020202020
	for {
		if s.quoted {
			if s.string(b) < 0 {
				return -1
			}
			s.quoted = false
		}
		p, depth := s.at, s.depth
	unquoted:
		for p < len(b) {
			switch b[p] {
			case '\n': // indentation is most of what kubectl prints
				p++
				for p+8 <= len(b) && binary.LittleEndian.Uint64(b[p:]) == spaces {
					p += 8
				}
				continue
			case '"':
				s.quoted = true
				p++
				break unquoted
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return p + 1
				}
			}
			p++
		}
		s.at, s.depth = p, depth
		if !s.quoted {
			return -1
		}
	}
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

// readType reads apiVersion and kind of an object. A field that is missing or not a
// string stays empty.
func readType(b []byte) Type {
	var h Type
	p := skipSpace(b, 0)
	if p < 0 || b[p] != '{' {
		return h
	}
	for m, ok := nextMember(b, p+1); ok && (h.APIVersion == "" || h.Kind == ""); m, ok = nextMember(b, m.end) {
		h.set(string(m.name), b[m.start:m.end])
	}
	return h
}

// set sets a field of the type from one member of an object.
func (h *Type) set(name string, value []byte) {
	if len(value) == 0 || value[0] != '"' {
		return
	}
	switch name {
	case "apiVersion":
		h.APIVersion = string(unquote(value))
	case "kind":
		h.Kind = string(unquote(value))
	}
}

// unquote returns the value of a JSON string; of a malformed one, as much as
// possible.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return bytes.Trim(quoted, `"`)
	}
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return text
}

func countLines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }
