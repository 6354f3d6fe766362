package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxWholeYAML is the size up to which a YAML document is parsed as a whole. A larger
// one must be a list in block style, which kubectl prints, so that it can be split
// into items.
const maxWholeYAML = 4 << 20

var errNotBlockList = fmt.Errorf("document is larger than %d MiB and not a list in block style; split it, or convert it to JSON",
	maxWholeYAML>>20)

// yamlSplitter splits a stream of YAML into documents, and large lists into items.
type yamlSplitter struct {
	r      *bufio.Reader
	file   string
	number int
	line   int // of the last line read, from 1
	emit   func(*document) error
	whole  int // the size up to which a document is emitted as a whole

	text  []byte    // of the document so far
	begin int       // the line of its first byte
	list  *yamlList // when the document is read as a list
	long  []byte    // scratch for lines longer than the reader's buffer
}

// split reads to the end of the stream.
func (s *yamlSplitter) split() error {
	s.begin = s.line + 1
	for {
		line, err := s.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return &Error{File: s.file, Position: Position{Line: s.line}, Err: fmt.Errorf("read: %w", err)}
		}
		if len(line) > 0 {
			s.line++
			if err := s.addLine(line); err != nil {
				return err
			}
		}
		if err != nil {
			return s.flush()
		}
	}
}

// readLine returns the next line with its end. The last line may have none.
func (s *yamlSplitter) readLine() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	s.long = append(s.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(s.long) > maxObject {
			return nil, errTooLarge
		}
		line, err = s.r.ReadSlice('\n')
		s.long = append(s.long, line...)
	}
	return s.long, err
}

func (s *yamlSplitter) addLine(line []byte) error {
	if isMarker(line, "---") {
		if err := s.flush(); err != nil {
			return err
		}
		s.begin = s.line
		// Text after the marker on its line belongs to the document.
		s.text = append(append(s.text, "   "...), line[3:]...)
		return nil
	}
	if isMarker(line, "...") {
		err := s.flush()
		s.begin = s.line + 1
		return err
	}
	if s.list != nil {
		return s.list.addLine(line, s.line)
	}
	s.text = append(s.text, line...)
	if len(s.text) > s.whole {
		return s.startList()
	}
	return nil
}

// isMarker reports whether a line begins with a document marker.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// flush emits the document so far, unless it is empty.
func (s *yamlSplitter) flush() error {
	defer func() { s.text, s.list = s.text[:0], nil }()
	if s.list != nil {
		return s.list.finish()
	}
	if isBlankYAML(s.text) {
		return nil
	}
	s.number++
	return s.emit(&document{file: s.file, number: s.number, line: s.begin, text: s.text, yaml: true})
}

// isBlankYAML reports whether text holds nothing but space, comments and
// directives.
func isBlankYAML(text []byte) bool {
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) > 0 && trimmed[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// startList switches to reading the document as a list.
func (s *yamlSplitter) startList() error {
	s.number++
	s.list = &yamlList{splitter: s}
	line := s.begin
	for text := range bytes.Lines(s.text) {
		if err := s.list.addLine(text, line); err != nil {
			return err
		}
		line++
	}
	s.text = s.text[:0]
	return nil
}

// yamlList reads a list in block style: top-level keys, one of which is "items:". The
// lines that begin an item start with a dash, all at the same indentation.
type yamlList struct {
	splitter *yamlSplitter
	rest     []byte // the document without the items
	inItems  bool
	hasItems bool
	indent   int // of the dashes; -1 until the first
	listType Type
	item     []byte
	begin    int // the line where the item begins
	count    int
}

func (l *yamlList) addLine(line []byte, number int) error {
	if !l.inItems {
		l.rest = append(l.rest, line...)
		if len(l.rest) > maxWholeYAML {
			return l.fail(number, errNotBlockList)
		}
		if key, ok := bytes.CutPrefix(line, []byte("items:")); ok && isBlankYAML(key) {
			if l.hasItems {
				return l.fail(number, errors.New("items are given twice"))
			}
			l.inItems, l.hasItems, l.indent = true, true, -1
			l.listType = l.readRest()
		}
		return nil
	}
	content := bytes.TrimLeft(line, " ")
	indent := len(line) - len(content)
	blank := len(bytes.TrimSpace(content)) == 0 || content[0] == '#'
	dash := isMarker(content, "-")
	switch {
	case blank && l.item == nil:
		return nil
	case blank:
	case dash && (l.indent < 0 || indent == l.indent):
		if err := l.flush(); err != nil {
			return err
		}
		l.indent, l.begin = indent, number
		l.item = append(l.item[:0], line...)
		return nil
	case indent == 0:
		l.inItems = false
		if err := l.flush(); err != nil {
			return err
		}
		return l.addLine(line, number)
	case l.item == nil, indent <= l.indent:
		return l.fail(number, errors.New("want a dash that begins an item, at the indentation of the others"))
	}
	l.item = append(l.item, line...)
	if len(l.item) > maxObject {
		return l.fail(l.begin, errTooLarge)
	}
	return nil
}

func (l *yamlList) flush() error {
	if l.item == nil {
		return nil
	}
	l.count++
	s := l.splitter
	err := s.emit(&document{
		file: s.file, number: s.number, item: l.count, line: l.begin,
		text: l.item, yaml: true, dash: true, list: l.listType,
	})
	l.item = nil
	return err
}

func (l *yamlList) finish() error {
	if err := l.flush(); err != nil {
		return err
	}
	if !l.hasItems {
		return l.fail(l.splitter.begin, errNotBlockList)
	}
	if h := l.readRest(); !h.isList() {
		return l.fail(l.splitter.begin,
			fmt.Errorf("document is larger than %d MiB and its kind %q is not a list", maxWholeYAML>>20, h.Kind))
	}
	return nil
}

// readRest reads the type of the list from the text around the items.
func (l *yamlList) readRest() Type {
	text, err := yamlToJSON(l.rest)
	if err != nil {
		return Type{}
	}
	return readType(text)
}

func (l *yamlList) fail(line int, err error) error {
	return &Error{File: l.splitter.file, Position: Position{Document: l.splitter.number, Line: line}, Err: err}
}
