package review

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// extraValues are the extra values of a user. Every review about a service account has some, and the
// default decoder takes three times as long.
type extraValues map[string][]string

// plainExtra is decoded by the default decoder.
type plainExtra map[string][]string

// readExtra decodes extra values as the default decoder does: the last of repeated names counts.
func readExtra(d *jsontext.Decoder, into *extraValues) error {
	value, err := d.ReadValue() // checks the syntax
	if err != nil {
		return err
	}
	if isPlain(value) {
		if values, ok := splitExtra(string(value)); ok {
			*into = values
			return nil
		}
	}
	return json.Unmarshal(value, (*plainExtra)(into), asKubernetes())
}

// isPlain reports whether the strings in a JSON text are as they are written: ASCII without escapes.
func isPlain(text []byte) bool {
	if bytes.IndexByte(text, '\\') >= 0 {
		return false
	}
	const word, high = 8, 0x8080808080808080
	for ; len(text) >= word; text = text[word:] {
		if binary.LittleEndian.Uint64(text)&high != 0 {
			return false
		}
	}
	for _, b := range text {
		if b >= 0x80 {
			return false
		}
	}
	return true
}

// splitExtra returns parts of a plain text: the names, and the strings of their lists. It returns false for
// anything but an object with lists of strings that is written without spaces, as programs do.
func splitExtra(text string) (values extraValues, ok bool) {
	text, ok = strings.CutPrefix(text, "{")
	if !ok {
		return nil, false
	}
	values = extraValues{}
	if text == "}" {
		return values, true
	}
	// API servers send five or six names with one string each: their lists share memory.
	shared := make([]string, 0, 6)
	for {
		var name, value string
		if name, text, ok = cutString(text); !ok || !strings.HasPrefix(text, ":[") {
			return nil, false
		}
		text = text[len(":"):]
		from := len(shared)
		for text != "" && text[0] != ']' { // "[" or ","
			if value, text, ok = cutString(text[1:]); !ok {
				return nil, false
			}
			shared = append(shared, value)
		}
		values[name] = shared[from:len(shared):len(shared)]
		if text == "]}" {
			return values, true
		}
		if text, ok = strings.CutPrefix(text, "],"); !ok {
			return nil, false
		}
	}
}

// cutString returns the JSON string at the beginning of a plain text, and the rest.
func cutString(text string) (value, rest string, ok bool) {
	if text == "" || text[0] != '"' {
		return "", "", false
	}
	return strings.Cut(text[1:], `"`)
}
