package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// splitDocuments splits the whole text. JSON is detected by its first byte. The text
// of a document is valid only during the call to emit.
func splitDocuments(file string, text *stream, emit func(*document) error) error {
	isJSON, err := startsJSON(text)
	if err != nil {
		return &Error{File: file, Err: fmt.Errorf("read: %w", err)}
	}
	yaml := &yamlSplitter{r: text.Reader, file: file, emit: emit, whole: maxWholeYAML}
	if isJSON {
		w := newWindow(text)
		js := &jsonSplitter{window: w, file: file, emit: emit}
		if done, err := js.split(); done || err != nil {
			return err
		}
		yaml.r = newReader(w)
		yaml.number, yaml.line = js.number, w.line-1
	}
	return yaml.split()
}

// startsJSON reads the first byte that is not space. A brace begins JSON, unless the
// next bytes show that it is YAML in flow style.
func startsJSON(text *stream) (bool, error) {
	ahead, err := text.Peek(windowSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	ahead = bytes.TrimLeft(ahead, " \t\r\n")
	if len(ahead) == 0 || ahead[0] != '{' && ahead[0] != '[' {
		return false, nil
	}
	inside := bytes.TrimLeft(ahead[1:], " \t\r\n")
	return len(inside) == 0 || ahead[0] == '[' || inside[0] == '"' || inside[0] == '}', nil
}

// newReader returns a reader of the remaining stream of a window.
func newReader(w *window) *bufio.Reader {
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(w.data()), w.r), windowSize)
}
