package render

import (
	"bufio"
	"io"
)

// indenter writes compact JSON with one entry of an object or list on each line, indented by two
// spaces for each level. It does so in one pass: package json checks each byte again, and holds the
// result in memory. Its input must be valid. Errors show in flush.
type indenter struct {
	out     *bufio.Writer
	depth   int
	quoted  bool // within a string
	escaped bool // after a backslash within a string
	opened  bool // after an opening bracket: an empty object or list stays on its line
}

// indentedChunk is the size in bytes of one write.
const indentedChunk = 64 << 10

func newIndenter(out io.Writer) *indenter {
	return &indenter{out: bufio.NewWriterSize(out, indentedChunk)}
}

func (w *indenter) flush() error { return w.out.Flush() }

// Write implements io.Writer. The text may come in pieces.
func (w *indenter) Write(text []byte) (int, error) {
	for i := 0; i < len(text); {
		if w.quoted {
			i += w.restOfString(text[i:])
			continue
		}
		w.token(text[i])
		i++
	}
	return len(text), nil
}

// restOfString writes the text up to the end of the string, and returns its length.
func (w *indenter) restOfString(text []byte) int {
	for i, c := range text {
		switch {
		case w.escaped:
			w.escaped = false
		case c == '\\':
			w.escaped = true
		case c == '"':
			w.quoted = false
			w.out.Write(text[:i+1])
			return i + 1
		}
	}
	w.out.Write(text)
	return len(text)
}

// token writes a byte outside of strings.
func (w *indenter) token(c byte) {
	closes := c == '}' || c == ']'
	switch {
	case closes && !w.opened:
		w.depth--
		w.newline()
	case !closes && w.opened && c != '\n':
		w.depth++
		w.newline()
	}
	w.opened = c == '{' || c == '['
	w.quoted = c == '"'
	w.out.WriteByte(c)
	switch c {
	case ',':
		w.newline()
	case ':':
		w.out.WriteByte(' ')
	}
}

func (w *indenter) newline() {
	w.out.WriteByte('\n')
	const spaces = "                                "
	for left := 2 * w.depth; left > 0; left -= len(spaces) {
		w.out.WriteString(spaces[:min(left, len(spaces))])
	}
}
