package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// maxObject bounds the text of one object. The API server accepts objects of up
	// to 3 MiB.
	maxObject = 64 << 20
	// windowSize is the minimum size of the buffer.
	windowSize = 256 << 10
)

var errTooLarge = fmt.Errorf("object is larger than %d MiB", maxObject>>20)

// window is a sliding buffer over a stream. It grows to hold one object. Positions
// are relative to its beginning.
type window struct {
	r          io.Reader
	buf        []byte
	start, end int
	line       int // of the beginning, from 1
	err        error
}

func newWindow(r io.Reader) *window { return &window{r: r, buf: make([]byte, windowSize), line: 1} }

// data returns the content of the window. It is valid until more is read.
func (w *window) data() []byte { return w.buf[w.start:w.end] }

// more reads more of the stream. It returns io.EOF at the end of the stream and
// errTooLarge when the window may not grow.
func (w *window) more() error {
	if w.err != nil {
		return w.err
	}
	if w.end == len(w.buf) {
		if w.end-w.start >= maxObject {
			return errTooLarge
		}
		buf := w.buf
		if w.start < len(buf)/2 {
			buf = make([]byte, 2*len(buf))
		}
		w.end = copy(buf, w.data())
		w.buf, w.start = buf, 0
	}
	for range 100 {
		n, err := w.r.Read(w.buf[w.end:])
		w.end += n
		if n > 0 {
			w.err = err // for the next call
			return nil
		}
		if err != nil {
			w.err = err
			return err
		}
	}
	return io.ErrNoProgress
}

// advance moves the beginning of the window n bytes on.
func (w *window) advance(n int) {
	w.line += countLines(w.buf[w.start : w.start+n])
	w.start += n
}

// space returns the position of the next byte from p on that is not space.
func (w *window) space(p int) (int, error) {
	for {
		if q := skipSpace(w.data(), p); q >= 0 {
			return q, nil
		}
		p = len(w.data())
		if err := w.more(); err != nil {
			return p, err
		}
	}
}

// value returns the end of the value that begins at p.
func (w *window) value(p int) (int, error) {
	for s := (scan{begin: p, at: p}); ; {
		if q := s.end(w.data()); q >= 0 {
			return q, nil
		}
		if err := w.more(); err != nil {
			return len(w.data()), err
		}
	}
}

// startsWith reports whether the window begins with a text.
func (w *window) startsWith(text string) bool {
	for len(w.data()) < len(text) && w.more() == nil {
	}
	return bytes.HasPrefix(w.data(), []byte(text))
}

// isReadError distinguishes errors of the stream from its end.
func isReadError(err error) bool {
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errTooLarge)
}
