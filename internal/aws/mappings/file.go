package mappings

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

const (
	// fileInterval is the interval between checks of the file.
	fileInterval = 2 * time.Second
	// maxFile is the maximum size of the file in bytes: the size of the largest ConfigMap.
	maxFile = 1 << 20
)

// followFile reads the file when it has changed and then stayed the same, so that it is
// not read while it is being written. At the start, it is read at once.
func (l *Live) followFile(ctx context.Context, s *source) {
	ticker := time.NewTicker(l.opts.Interval)
	defer ticker.Stop()
	f := file{path: l.opts.File}
	for f.look(s, true); ; f.look(s, false) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// file has the content at the last check, and the content that was last used. Both can be
// nil.
type file struct {
	path        string
	seen, taken []byte
}

func (f *file) look(s *source, atOnce bool) {
	text, err := ReadFile(f.path)
	if err != nil {
		f.seen = nil
		s.age.Failed(err)
		s.unreachable(fmt.Errorf("read iam.file: %w", err))
		return
	}
	settled := atOnce || f.seen != nil && bytes.Equal(text, f.seen)
	f.seen = text
	switch {
	case f.taken != nil && bytes.Equal(text, f.taken):
		s.age.MarkCurrent()
		s.unreachable(nil)
	case settled:
		f.taken = text
		s.age.MarkCurrent()
		s.apply(iam.ParseFile(text, f.path))
	}
}

// ReadFile returns the content of a file with mappings. It is never nil without an error.
func ReadFile(path string) ([]byte, error) {
	opened, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, err
}
