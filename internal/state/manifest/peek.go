package manifest

import (
	"bytes"
	"slices"
	"strings"
)

// peek reads the type of a document without parsing it. known is false if it takes a
// parser.
func peek(d *document) (h Type, known bool) {
	if d.yaml && !looksJSON(d.text) {
		return peekYAML(d.text, d.dash)
	}
	h = readType(d.text)
	if inherited := d.list.element(); h.Kind == "" {
		h = inherited
	}
	return h, h.Kind != "" && h.APIVersion != ""
}

func looksJSON(text []byte) bool {
	content := trimSpace(text)
	return len(content) > 0 && (content[0] == '{' || content[0] == '[')
}

// peekYAML reads the lines in the outermost column of a block mapping. known is false
// if they are not simple: keys that are not plain words, or duplicate keys. So a line
// within a multi-line string is never taken for a key, because then the key itself is
// a duplicate.
func peekYAML(text []byte, dash bool) (h Type, known bool) {
	column, kinds, versions := 0, 0, 0
	first, word := true, false // word: the last key has a plain scalar that may continue on the next line
	for line := range bytes.Lines(text) {
		if first && isBlankYAML(line) {
			continue
		}
		if first && dash {
			content := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimLeft(line, " "), []byte("-")), " ")
			column = len(line) - len(content)
			line = append(bytes.Repeat([]byte(" "), column), content...)
		}
		first = false
		switch outer := outermost(line, column); {
		case outer == inside && word && len(bytes.TrimSpace(line)) > 0:
			return Type{}, false
		case outer == inside:
			continue
		case outer == beyond:
			return Type{}, false
		}
		key, value, ok := plainKey(line[column:])
		word = key == "kind" || key == "apiVersion"
		switch {
		case !ok:
			return Type{}, false
		case key == "kind":
			kinds++
			h.Kind = plainScalar(value)
		case key == "apiVersion":
			versions++
			h.APIVersion = plainScalar(value)
		}
	}
	return h, kinds == 1 && versions == 1 && h.Kind != "" && h.APIVersion != ""
}

// plainKey splits a line after a key that is one plain word.
func plainKey(line []byte) (key string, value []byte, ok bool) {
	for i, c := range line {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'):
			continue
		case c == ':' && i > 0:
			value = line[i+1:]
			return string(line[:i]), value, len(value) == 0 || bytes.IndexByte([]byte(" \t\r\n"), value[0]) >= 0
		}
		break
	}
	return "", nil, false
}

// Where a line of a block mapping begins, relative to the column of its keys.
type beginning int

const (
	// inside is more indented than a key, or blank.
	inside beginning = iota
	// atKey is in the column of the keys.
	atKey
	// beyond is less indented than the keys.
	beyond
)

func outermost(line []byte, column int) beginning {
	content := bytes.TrimLeft(line, " ")
	switch indent := len(line) - len(content); {
	case len(bytes.TrimSpace(content)) == 0, content[0] == '#', indent > column:
		return inside
	case indent < column:
		return beyond
	case isMarker(content, "-"): // an item of a list that is not indented
		return inside
	}
	return atKey
}

// plainScalar returns a value that is one word and a string; empty if it could be
// something else.
func plainScalar(value []byte) string {
	value = bytes.TrimSpace(value)
	quoted := len(value) > 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0]
	if quoted {
		value = value[1 : len(value)-1]
	}
	for i, c := range value {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if (i == 0 && !quoted) || (c < '0' || c > '9') && c != '.' && c != '/' && c != '-' {
				return ""
			}
		}
	}
	if !quoted && isReserved(string(value)) {
		return ""
	}
	return string(value)
}

// isReserved reports whether a plain word is true, false or null in YAML 1.1.
func isReserved(word string) bool {
	return slices.ContainsFunc([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, func(reserved string) bool {
		return strings.EqualFold(word, reserved)
	})
}
