// Package filetext reads the text of files that may be compressed, regardless of
// their names, and bounds the cost of decompression.
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

// ErrEndsEarly is the error of truncated compressed data.
var ErrEndsEarly = errors.New("compressed data ends early; the file is incomplete, or still being compressed")

// ErrTooLong is the error of compressed data that expands too much.
var ErrTooLong = fmt.Errorf("the text is more than %d times as long as the compressed file; "+
	"decompress the file first if that is correct", maxExpansion)

const (
	// bufferSize is the size of a read, in bytes.
	bufferSize = 256 << 10
	// maxWindow is how much memory a zstd stream may require, in bytes: as much as
	// the program zstd uses with --long.
	maxWindow = 128 << 20
	// maxExpansion is the maximum ratio of text to compressed file. Very repetitive
	// logs and manifests reach a ratio of 100 at most.
	maxExpansion = 1000
	// anyLength is the length up to which the ratio is not checked.
	anyLength = 1 << 30
)

// Text is the text of a file.
type Text struct {
	io.Reader
	stored *counter
	close  func() error
}

// New opens the text of a file. gzip and zstd are detected by their first bytes and
// decompressed; all other files are read unchanged. The file is closed with the text,
// and on an error.
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
		text, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow),
			zstd.WithDecoderMaxWindow(maxWindow))
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

// Stored returns how many bytes of the stored file have been read.
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

// reader reads decompressed text. It explains an unexpected end, and fails when the
// text is too long.
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
	if err = earlyEnd(err); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, ErrEndsEarly) {
		err = fmt.Errorf("compressed data is damaged, or cannot be read, at about byte %d: %w", r.stored.n, err)
	}
	return n, err
}

func earlyEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrEndsEarly
	}
	return err
}
