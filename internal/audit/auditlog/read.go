package auditlog

import (
	"context"
	"fmt"
	"io"
	"runtime"
)

const (
	// MaxLine is the maximum length of a line in bytes. Lines with response objects
	// (level RequestResponse) can be long.
	MaxLine = 256 << 20
	// MaxBroken is the maximum number of broken lines. An input with more is not an
	// audit log.
	MaxBroken = 100
)

// Sink receives the events. T is the result of a part of the log.
type Sink[T any] struct {
	// New returns an empty part. Parts are reused.
	New func() T
	// Event returns a function that adds an event to a part. The event is valid until that
	// returns. Event is called once for each worker, so that the functions may keep what
	// must not be used concurrently.
	Event func() func(part T, e *Event)
	// Merge adds a part to the result and empties it. It is called in the order of the
	// log.
	Merge func(part T)
}

// Options are the options of Read.
type Options struct {
	// Stdin is read for the path [Stdin].
	Stdin io.Reader
	// Progress, if set, is called from time to time, never concurrently.
	Progress func(Progress)
	// Opened, if set, is called for every file, in order, with its first line; empty for an
	// empty file.
	Opened func(f File, first []byte)
}

// Progress is the progress of Read.
type Progress struct {
	File string
	// Done and Total are stored bytes of File; Total is 0 if unknown.
	Done, Total int64
	// Lines is the number of lines read from all files.
	Lines int
}

// Summary counts what was read.
type Summary struct {
	Files  int `json:"files"`
	Lines  int `json:"lines"`
	Events int `json:"events"`
	// Broken are the lines that could not be read. They were skipped.
	Broken []*LineError `json:"broken,omitempty"`
	// Unfinished are the last lines of files that end in the middle of an event, as in a
	// log that is being written.
	Unfinished []*LineError `json:"unfinished,omitempty"`
}

// LineError is the error of a line that could not be read.
type LineError struct {
	File string `json:"file"`
	// Line counts from 1, in the decompressed text.
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func (e *LineError) Error() string { return fmt.Sprintf("%s: line %d: %s", e.File, e.Line, e.Reason) }

// Read reads files and passes their events to the sink in the order of the files. Files are
// decompressed in parallel, and lines are decoded in parallel, with a bound on what is read
// ahead, so that memory does not grow with the log.
//
// Read skips a broken line and adds it to the summary, so that the other lines can be
// reported. It returns an error if the first line of a file is broken, if too many lines
// are broken, and if a file cannot be read. The summary then covers what was read before.
func Read[T any](ctx context.Context, files []File, sink Sink[T], opts Options) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newPipeline(sink, opts, runtime.GOMAXPROCS(0))
	lanes := p.start(ctx, files)
	return p.merge(ctx, lanes)
}

func (s *Summary) add(opened bool, lines, events int, broken []*LineError, unfinished *LineError) error {
	if opened {
		s.Files++
	}
	s.Lines += lines
	s.Events += events
	if unfinished != nil {
		s.Unfinished = append(s.Unfinished, unfinished)
	}
	for _, b := range broken {
		if b.Line == 1 {
			return b
		}
		if len(s.Broken) == MaxBroken {
			return fmt.Errorf("%w; and %d lines before: this is not an audit log, or it is badly damaged", b, MaxBroken)
		}
		s.Broken = append(s.Broken, b)
	}
	return nil
}
