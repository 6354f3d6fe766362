package auditlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	storedBuffer = 64 << 10
	// maxWindow is how much memory a zstd stream may ask for, in bytes.
	maxWindow = 128 << 20
)

// stream is the text of a file.
type stream struct {
	io.Reader
	counter *counter
	close   func() error
}

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

// open begins to read a file, and decompresses it if it is compressed with gzip or
// zstd, whatever its name.
func (f File) open(stdin io.Reader) (*stream, error) {
	raw, closeFile := stdin, func() error { return nil }
	if f.Path != Stdin {
		file, err := os.Open(f.Path)
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		raw, closeFile = file, file.Close
	} else if raw == nil {
		return nil, errors.New("read the audit log: there is no standard input")
	}
	s := &stream{counter: &counter{r: raw}, close: closeFile}
	var err error
	if s.Reader, err = decompress(s.counter); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", f.Name(), err), closeFile())
	}
	return s, nil
}

func decompress(raw io.Reader) (io.Reader, error) {
	stored := bufio.NewReaderSize(raw, storedBuffer)
	magic, err := stored.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		text, err := gzip.NewReader(stored)
		if err != nil {
			return nil, fmt.Errorf("decompress gzip: %w", earlyEnd(err))
		}
		return decompressed{text}, nil
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		text, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("decompress zstd: %w", err)
		}
		return decompressed{text}, nil
	}
	return stored, nil
}

// decompressed says what an unexpected end means in compressed data.
type decompressed struct{ io.Reader }

func (d decompressed) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	return n, earlyEnd(err)
}

func earlyEnd(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("compressed data ends early; if the file is still being compressed, name the one it is made from")
	}
	return err
}
