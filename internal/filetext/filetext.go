// Package filetext reads the text of files that may be compressed, whatever their
// names say.
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

// NewReader returns the text of what is stored: gzip and zstd are told by their first
// bytes and decompressed, anything else is returned as it is. A zstd stream may ask for
// so many bytes of memory.
func NewReader(stored *bufio.Reader, maxMemory uint64) (io.Reader, error) {
	magic, err := stored.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		text, err := gzip.NewReader(stored)
		if err != nil {
			return nil, fmt.Errorf("decompress gzip: %w", earlyEnd(err))
		}
		return reader{text}, nil
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		text, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMemory))
		if err != nil {
			return nil, fmt.Errorf("decompress zstd: %w", err)
		}
		return reader{text}, nil
	}
	return stored, nil
}

// reader says what an unexpected end means in compressed data.
type reader struct{ io.Reader }

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	return n, earlyEnd(err)
}

func earlyEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrEndsEarly
	}
	return err
}
