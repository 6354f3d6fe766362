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

const (
	// maxObject bounds the text of one object. The API server accepts objects of up
	// to 3 MiB.
	maxObject = 64 << 20
	// windowSize is the size of a read.
	windowSize = 256 << 10
)

var errTooLarge = fmt.Errorf("object is larger than %d MiB", maxObject>>20)

// window keeps the text of a stream from the beginning of the current object on, while a decoder reads it.
type window struct {
	r     io.Reader
	text  []byte
	start int   // of what is kept, in text
	begin int64 // of that, in the stream
	line  int   // of that, from 1
}

// Read reads more of the stream, unless the object is too large.
func (w *window) Read(p []byte) (int, error) {
	if len(w.text)-w.start >= maxObject {
		return 0, errTooLarge
	}
	if w.start > len(w.text)/2 {
		w.text, w.start = w.text[:copy(w.text, w.text[w.start:])], 0
	}
	n, err := w.r.Read(p)
	w.text = append(w.text, p[:n]...)
	return n, err
}

// upTo returns the text up to a position in the stream.
func (w *window) upTo(end int64) []byte {
	return w.text[w.start:min(len(w.text), w.start+int(end-w.begin))]
}

// advance forgets the text up to a position in the stream.
func (w *window) advance(to int64) {
	passed := w.upTo(to)
	w.line += countLines(passed)
	w.start += len(passed)
	w.begin = to
}

// jsonSplitter splits a stream of JSON documents into objects: each document, or each
// item of a list, so that a list of any size is streamed. It leaves it to the decoders of objects to
// refuse fields that are given twice.
type jsonSplitter struct {
	*window
	decoder *jsontext.Decoder
	file    string
	number  int
	emit    func(*document) error
}

func newJSONSplitter(file string, r io.Reader, emit func(*document) error) *jsonSplitter {
	w := &window{r: r, line: 1}
	return &jsonSplitter{window: w, decoder: lenient(w), file: file, emit: emit}
}

// lenient returns a decoder for text that is decoded once more.
func lenient(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// split reads to the end of the stream. It returns false if it stopped before,
// at text that does not begin an object.
func (s *jsonSplitter) split() (done bool, err error) {
	for s.decoder.PeekKind() == jsontext.KindBeginObject {
		s.number++
		if err := s.document(); err != nil {
			return false, err
		}
	}
	s.advance(s.decoder.InputOffset())
	if len(trimSpace(s.text[s.start:])) > 0 {
		return false, nil
	}
	if _, err := s.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return false, s.readError(err)
	}
	return true, nil
}

// document handles an object. The items of a list are emitted one by one.
func (s *jsonSplitter) document() error {
	if _, err := s.decoder.ReadToken(); err != nil {
		return s.failed(err)
	}
	s.advance(s.decoder.InputOffset() - 1)
	var t Type
	split := false
	for {
		name, err := s.decoder.ReadToken()
		if err != nil {
			return s.failed(err)
		}
		if name.Kind() == jsontext.KindEndObject {
			return s.end(t, split)
		}
		key := name.String()
		if key == "items" && s.decoder.PeekKind() == jsontext.KindBeginArray && (split || t.Kind == "" || t.isList()) {
			split = true
			if err := s.items(t); err != nil {
				return err
			}
			continue
		}
		value, err := s.decoder.ReadValue()
		if err != nil {
			return s.failed(err)
		}
		t.set(key, value)
		if split {
			s.advance(s.decoder.InputOffset())
		}
	}
}

// end emits a document, unless its items were emitted.
func (s *jsonSplitter) end(t Type, split bool) error {
	end := s.decoder.InputOffset()
	switch {
	case !split:
		if err := s.emit(s.newDocument(s.upTo(end))); err != nil {
			return err
		}
	case !t.isList():
		return s.fail(end, fmt.Errorf("document has items but its kind is %q, which is not a list", t.Kind))
	}
	s.advance(end)
	return nil
}

// items emits the items of a list.
func (s *jsonSplitter) items(t Type) error {
	if _, err := s.decoder.ReadToken(); err != nil {
		return s.failed(err)
	}
	for item := 1; s.decoder.PeekKind() != jsontext.KindEndArray; item++ {
		kind := s.decoder.PeekKind()
		value, err := s.decoder.ReadValue()
		if err != nil {
			return s.failed(err)
		}
		end := s.decoder.InputOffset()
		begin := end - int64(len(value))
		if kind != jsontext.KindBeginObject {
			return s.fail(begin, fmt.Errorf("want an object as item %d of the list, got %s", item, strictjson.KindNoun(kind)))
		}
		s.advance(begin)
		d := s.newDocument(value)
		d.item, d.list = item, t
		if err := s.emit(d); err != nil {
			return err
		}
		s.advance(end)
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return s.failed(err)
	}
	s.advance(s.decoder.InputOffset())
	return nil
}

// newDocument returns a document at the beginning of the window. Its text is valid until more is read.
func (s *jsonSplitter) newDocument(text []byte) *document {
	return &document{file: s.file, number: s.number, line: s.line, text: text}
}

// fail makes an error at a position in the stream.
func (s *jsonSplitter) fail(at int64, err error) error {
	d := s.newDocument(s.upTo(at))
	return d.errorAt(len(d.text), err)
}

// failed explains why the decoder could not go on.
func (s *jsonSplitter) failed(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errTooLarge):
		return s.fail(s.begin, errTooLarge)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return s.fail(s.begin+int64(len(s.text)-s.start), errors.New("file ends in the middle of the document"))
	case errors.As(err, &syntax):
		return s.fail(syntax.ByteOffset, strictjson.ExplainWithoutPlace(syntax))
	}
	return s.readError(err)
}

func (s *jsonSplitter) readError(err error) error {
	return &Error{File: s.file, Position: Position{Line: s.line}, Err: fmt.Errorf("read: %w", err)}
}
