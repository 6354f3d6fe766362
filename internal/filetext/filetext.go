// Package filetext reads the text of files that may be compressed, whatever their
// names say, and bounds what decompressing them may cost.
package filetext

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// ErrEndsEarly is the error of compressed data that is not whole.
var ErrEndsEarly = errors.New("compressed data ends early; the file is incomplete, or still being compressed")

// ErrTooLong is the error of compressed data that is very much smaller than its text.
var ErrTooLong = fmt.Errorf("the text is more than %d times as long as the compressed file; decompress the file first if that is correct", maxExpansion)

const (
	// bufferSize is how much of a file is read at once.
	bufferSize = 256 << 10
	// maxWindow is how much memory a zstd stream may ask for, in bytes: as much as the
	// program zstd uses with --long.
	maxWindow = 128 << 20
	// maxExpansion is how many times as long as the file its text may be. Logs and
	// manifests that say the same over and over become 100 times smaller at most.
	maxExpansion = 1000
	// anyLength is how long a text may be whatever it comes from.
	anyLength = 1 << 30
)

// Text is the text of a file.
type Text struct {
	io.Reader
	stored *counter
	close  func() error
}

// New begins to read a file: gzip and zstd are recognized by their first bytes and
// decompressed, anything else is the text as it is. The file is closed with the text,
// and if there is an error.
func New(file io.ReadCloser) (*Text, error) {
	t := &Text{stored: &counter{r: file}, close: file.Close}
	if err := t.open(bufio.NewReaderSize(t.stored, bufferSize)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return t, nil
}

func (t *Text) open(stored *bufio.Reader) error {
	magic, err := stored.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read: %w", err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		text, err := gzip.NewReader(stored)
		if err != nil {
			return fmt.Errorf("decompress gzip: %w", earlyEnd(err))
		}
		t.Reader = &reader{text: text, stored: t.stored}
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		text, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return fmt.Errorf("decompress zstd: %w", err)
		}
		t.Reader = &reader{text: text, stored: t.stored}
		closeFile := t.close
		t.close = func() error { text.Close(); return closeFile() }
	default:
		t.Reader = stored
	}
	return nil
}

// Stored is how many bytes of the file, as stored, have been read.
func (t *Text) Stored() int64 { return t.stored.n }

// Close closes the file.
func (t *Text) Close() error { return t.close() }

// counter counts the bytes as stored.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// reader reads what is decompressed. It says what an unexpected end means there, and
// ends when the text is too long.
type reader struct {
	text   io.Reader
	stored *counter
	n      int64
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.text.Read(p)
	if r.n += int64(n); r.n > anyLength && r.n/maxExpansion > r.stored.n {
		return n, ErrTooLong
	}
	return n, earlyEnd(err)
}

func earlyEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrEndsEarly
	}
	return err
}
