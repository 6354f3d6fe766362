package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// splitDocuments splits the whole text. JSON is detected by its first bytes. The text
// of a document is valid only during the call to emit.
func splitDocuments(file string, text *stream, emit func(*document) error) error {
	r, number, line := &lookahead{r: text.Reader}, 0, 1
	for {
		isJSON, err := startsJSON(r)
		if err != nil {
			return &Error{File: file, Position: Position{Line: line}, Err: fmt.Errorf("read: %w", err)}
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
		number, line = js.number, js.line
		r.unread(content)
		switch ahead, _ := r.peek(len(separator)); {
		case bytes.HasPrefix(ahead, []byte(separator)):
			r.at += len(separator)
		case number == 0 || bytes.IndexByte([]byte(`}],["`), content[0]) >= 0:
			js.number++
			return js.fail(js.begin, fmt.Errorf("want an object, got %s", strictjson.KindNoun(jsontext.Value(content).Kind())))
		}
	}
	rest := bufio.NewReaderSize(r, windowSize)
	yaml := &yamlSplitter{r: rest, file: file, emit: emit, whole: maxWholeYAML, number: number, line: line - 1}
	return yaml.split()
}

// separator separates YAML documents, and is allowed between JSON documents.
const separator = "---"

// lookahead reads a stream, and takes back what was read.
type lookahead struct {
	r    io.Reader
	text []byte // that is read before r
	at   int    // in text
}

func (l *lookahead) Read(p []byte) (int, error) {
	if l.at < len(l.text) {
		n := copy(p, l.text[l.at:])
		l.at += n
		return n, nil
	}
	l.text, l.at = nil, 0
	return l.r.Read(p)
}

// unread takes back the last bytes that were read.
func (l *lookahead) unread(last []byte) {
	if l.at -= len(last); l.at < 0 {
		l.text, l.at = slices.Concat(last, l.text[l.at+len(last):]), 0
	}
}

// peek returns at least n of the next bytes; fewer at the end of the stream.
func (l *lookahead) peek(n int) ([]byte, error) {
	for len(l.text)-l.at < n {
		more := make([]byte, n)
		read, err := l.r.Read(more)
		l.text, l.at = append(l.text[l.at:], more[:read]...), 0
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return l.text[l.at:], nil
}

// trimSpace returns text without the space before it.
func trimSpace(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

// startsJSON reads the first byte that is not space. A brace begins JSON, unless the
// next bytes show that it is YAML in flow style.
func startsJSON(text *lookahead) (bool, error) {
	ahead, err := text.peek(4096)
	if err != nil {
		return false, err
	}
	ahead = trimSpace(ahead)
	if len(ahead) == 0 || ahead[0] != '{' && ahead[0] != '[' {
		return false, nil
	}
	inside := trimSpace(ahead[1:])
	return len(inside) == 0 || ahead[0] == '[' || inside[0] == '"' || inside[0] == '}', nil
}
