package auditlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
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
	if s.Reader, err = filetext.NewReader(bufio.NewReaderSize(s.counter, storedBuffer), maxWindow); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", f.Name(), err), closeFile())
	}
	return s, nil
}
