package snapshot

import (
	"bytes"
	"io"
)

// Text returns the text of a snapshot: its header and its objects, each on a line. It is the form that
// other tools can read. Nothing is decompressed before the first Read.
func (f *File) Text() io.ReadCloser { return &text{file: f} }

// text is the text of a file, which a goroutine writes.
type text struct {
	file *File
	pipe *io.PipeReader // nil before the first Read
}

func (t *text) Read(p []byte) (int, error) {
	if t.pipe == nil {
		r, w := io.Pipe()
		t.pipe = r
		go func() { w.CloseWithError(t.file.writeText(w)) }()
	}
	return t.pipe.Read(p)
}

// Close ends the goroutine.
func (t *text) Close() error {
	if t.pipe == nil {
		return nil
	}
	return t.pipe.Close()
}

// writeText writes the text of a snapshot.
func (f *File) writeText(w io.Writer) error {
	buffer := append(bytes.Clone(f.Header), '\n')
	written := 0
	flush := func() error {
		if written += len(buffer); written > freeText && written/maxExpansion > f.stored {
			return errTooLarge
		}
		_, err := w.Write(buffer)
		buffer = buffer[:0]
		return err
	}
	for _, s := range f.Sections {
		err := s.Scan(Selection{}, func(r *Row) error {
			var err error
			if buffer, err = r.AppendText(buffer); err != nil {
				return err
			}
			if buffer = append(buffer, '\n'); len(buffer) >= frameTarget {
				return flush()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return flush()
}
