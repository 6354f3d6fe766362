package manifest

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// lineOf returns the line of the value at a path, or of the nearest enclosing value.
func (p part) lineOf(path []string) int {
	if p.yaml {
		_, line := p.node(p.at(path))
		return line
	}
	return p.line + p.lines + countLines(p.json[:findJSON(p.json, path)])
}

// findJSON returns where the value at a path begins, or the nearest enclosing value.
func findJSON(text []byte, path []string) int {
	decoder := lenient(bytes.NewBuffer(text))
	at := len(text) - len(trimSpace(text))
	for _, name := range path {
		if !enter(decoder, name) {
			break
		}
		rest := text[decoder.InputOffset():]
		at = len(text) - len(bytes.TrimLeft(rest, " \t\r\n:,"))
	}
	return at
}

// enter moves a decoder before a member of the next object, or before an item of the next array.
func enter(decoder *jsontext.Decoder, name string) (found bool) {
	token, err := decoder.ReadToken()
	kind := token.Kind()
	if err != nil || kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return false
	}
	for i := 0; ; i++ {
		key := strconv.Itoa(i)
		if kind == jsontext.KindBeginObject {
			token, err := decoder.ReadToken()
			if err != nil || token.Kind() != jsontext.KindString {
				return false
			}
			key = token.String()
		} else if decoder.PeekKind() == jsontext.KindEndArray {
			return false
		}
		if key == name {
			return true
		}
		if decoder.SkipValue() != nil {
			return false
		}
	}
}
