package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/go-logr/logr"
)

// escapedText makes the text logger quote every value. By default it writes a value with a line break
// unchanged, with all control characters for terminals, and values that are neither text nor errors as
// JSON, which escapes fewer of these characters.
type escapedText struct{ next logr.LogSink }

// Init implements logr.LogSink. This sink adds a frame between the caller and the sink that finds the
// caller's position.
func (s *escapedText) Init(info logr.RuntimeInfo) {
	info.CallDepth++
	s.next.Init(info)
}

// Enabled implements logr.LogSink.
func (s *escapedText) Enabled(level int) bool { return s.next.Enabled(level) }

// Info implements logr.LogSink.
func (s *escapedText) Info(level int, message string, keysAndValues ...any) {
	s.next.Info(level, message, escapedValues(keysAndValues)...)
}

// Error implements logr.LogSink.
func (s *escapedText) Error(err error, message string, keysAndValues ...any) {
	if err != nil {
		err = escapedError{err}
	}
	s.next.Error(err, message, escapedValues(keysAndValues)...)
}

// WithValues implements logr.LogSink.
func (s *escapedText) WithValues(keysAndValues ...any) logr.LogSink {
	return &escapedText{s.next.WithValues(escapedValues(keysAndValues)...)}
}

// WithName implements logr.LogSink.
func (s *escapedText) WithName(name string) logr.LogSink { return &escapedText{s.next.WithName(name)} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s *escapedText) WithCallDepth(depth int) logr.LogSink {
	if next, ok := s.next.(logr.CallDepthLogSink); ok {
		return &escapedText{next.WithCallDepth(depth)}
	}
	return s
}

// escapedValues wraps the values. Keys are constants of this program. A key without a value stays
// unwrapped.
func escapedValues(keysAndValues []any) []any {
	escaped := make([]any, len(keysAndValues))
	copy(escaped, keysAndValues)
	for i := 1; i < len(escaped); i += 2 {
		escaped[i] = escapedValue{escaped[i]}
	}
	return escaped
}

// escapedValue is a value that the text logger writes through WriteText.
type escapedValue struct{ value any }

// WriteText is called by the text logger.
func (v escapedValue) WriteText(b *bytes.Buffer) { writeEscaped(b, v.value) }

// escapedError is an error that the text logger writes through WriteText.
type escapedError struct{ error }

// WriteText is called by the text logger.
func (e escapedError) WriteText(b *bytes.Buffer) { writeEscaped(b, e.error) }

func (e escapedError) Unwrap() error { return e.error }

func writeEscaped(b *bytes.Buffer, value any) {
	switch value := value.(type) {
	case string:
		b.WriteString(strconv.Quote(value))
	case fmt.Stringer:
		b.WriteString(strconv.Quote(value.String()))
	case error:
		b.WriteString(strconv.Quote(value.Error()))
	case []byte:
		b.WriteString(strconv.Quote(string(value)))
	case logr.Marshaler:
		writeEscaped(b, value.MarshalLog())
	default:
		text, err := json.Marshal(value)
		if err != nil {
			b.WriteString(strconv.Quote(fmt.Sprint(value)))
			return
		}
		b.Write(escapeJSON(text))
	}
}

// escapedJSON writes JSON documents, one per line. In addition to what JSON requires, it escapes
// characters that cannot be printed.
type escapedJSON struct{ to io.Writer }

// Write implements io.Writer.
func (w escapedJSON) Write(line []byte) (int, error) {
	if _, err := w.to.Write(escapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// escapeJSON escapes the characters of a JSON text that are neither ASCII nor printable, which occur
// only in strings. It returns the text itself if there are none.
func escapeJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, unprintable) {
		return text
	}
	var escaped bytes.Buffer
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !unprintable(r):
			escaped.Write(text[:size])
		case r > 0xffff:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
		text = text[size:]
	}
	return escaped.Bytes()
}

func unprintable(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
