package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// splitDocuments cuts the whole text. JSON is recognised by its first byte. The text
// of a document is valid while it is emitted.
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

// startsJSON looks at the first byte that is not space. A brace begins JSON,
// unless what follows shows that it is YAML in flow style.
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

// newReader reads the rest of the stream that a window looks at.
func newReader(w *window) *bufio.Reader {
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(w.data()), w.r), windowSize)
}
