package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// splitDocuments splits the whole text. JSON is detected by its first byte. The text
// of a document is valid only during the call to emit.
func splitDocuments(file string, text *stream, emit func(*document) error) error {
	r, number, line := text.Reader, 0, 1
	for {
		isJSON, err := startsJSON(r)
		if err != nil {
			return &Error{File: file, Err: fmt.Errorf("read: %w", err)}
		}
		if !isJSON {
			break
		}
		js := newJSONSplitter(file, r, emit)
		js.number, js.line = number, line
		if done, err := js.split(); done || err != nil {
			return err
		}
		rest := js.text[js.start:]
		content := trimSpace(rest)
		js.advance(js.begin + int64(len(rest)-len(content)))
		r, number, line = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(content), r), windowSize), js.number, js.line
		switch separator, _ := r.Peek(3); {
		case string(separator) == "---":
			_, _ = r.Discard(len(separator))
		case number == 0 || bytes.IndexByte([]byte(`}],["`), content[0]) >= 0:
			js.number++
			return js.fail(js.begin, fmt.Errorf("want an object, got %s", badjson.KindNoun(jsontext.Value(content).Kind())))
		}
	}
	yaml := &yamlSplitter{r: r, file: file, emit: emit, whole: maxWholeYAML, number: number, line: line - 1}
	return yaml.split()
}

// trimSpace returns text without the space before it.
func trimSpace(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

// startsJSON reads the first byte that is not space. A brace begins JSON, unless the
// next bytes show that it is YAML in flow style.
func startsJSON(text *bufio.Reader) (bool, error) {
	ahead, err := text.Peek(windowSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	ahead = trimSpace(ahead)
	if len(ahead) == 0 || ahead[0] != '{' && ahead[0] != '[' {
		return false, nil
	}
	inside := trimSpace(ahead[1:])
	return len(inside) == 0 || ahead[0] == '[' || inside[0] == '"' || inside[0] == '}', nil
}
