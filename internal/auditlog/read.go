package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/semaphore"
)

const (
	// MaxLine is the maximum length of a line in bytes. Lines with response objects
	// (level RequestResponse) can be long.
	MaxLine = 256 << 20
	// MaxBroken is the maximum number of broken lines. An input with more is not an
	// audit log.
	MaxBroken = 100

	batchSize = 256 << 10
	// keptSize is the maximum size of a buffer that a batch reuses.
	keptSize = 4 * batchSize
	// maxHeld is the maximum number of bytes in batches that wait for workers or are
	// being decoded, unless one line is longer. The number of batches grows with the
	// number of processors, and long lines would make each batch large.
	maxHeld = 128 << 20
)

// Sink receives the events. T is the result of a part of the log.
type Sink[T any] struct {
	// New returns an empty part. Few parts are created; they are reused.
	New func() T
	// Event adds an event to a part. The event is valid until Event returns. Event is
	// called concurrently for different parts.
	Event func(part T, e *Event)
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
	Files int
	Lines int
	// Bytes is the size of the decompressed text.
	Bytes  int64
	Events int
	// Broken are the lines that could not be read. They were skipped.
	Broken []*LineError
	// Unfinished are the last lines of files that end in the middle of an event, as in a
	// log that is being written.
	Unfinished []*LineError
}

// LineError is the error of a line that could not be read.
type LineError struct {
	File string
	// Line counts from 1, in the decompressed text.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s: line %d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// Read reads files one after the other and passes their events to the sink. Lines are
// decoded in parallel, in a fixed number of batches, so that memory does not grow with the
// log.
//
// Read skips a broken line and adds it to the summary, so that the other lines can be
// reported. It returns an error if the first line of a file is broken, if too many lines
// are broken, and if a file cannot be read. The summary then covers what was read before.
func Read[T any](ctx context.Context, files []File, sink Sink[T], opts Options) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	batches := 2*workers + 1
	p := &pipeline[T]{
		sink: sink, opts: opts,
		held: semaphore.NewWeighted(maxHeld),
		free: make(chan *batch[T], batches), work: make(chan *batch[T], batches), ordered: make(chan *batch[T], batches),
	}
	for range batches {
		p.free <- &batch[T]{part: sink.New(), done: make(chan struct{}, 1)}
	}
	for range workers {
		go p.decode(ctx)
	}
	go p.read(ctx, files)
	return p.merge(ctx)
}

// pipeline connects one reader, several workers and one merger. Each batch goes from free
// through ordered and work back to free.
type pipeline[T any] struct {
	sink                Sink[T]
	opts                Options
	held                *semaphore.Weighted
	free, work, ordered chan *batch[T]
}

// batch is whole lines of one file.
type batch[T any] struct {
	text []byte
	file string
	line int // number of the first line, from 1
	// opened is true for the first batch of a file.
	opened   bool
	progress Progress
	end      bool
	readErr  error

	part       T
	lines      int
	events     int
	broken     []*LineError
	unfinished *LineError
	done       chan struct{}
}

// weight returns the size of the batch that counts towards [maxHeld].
func (b *batch[T]) weight() int64 { return min(int64(cap(b.text)), maxHeld) }

// shrink drops a large buffer.
func (b *batch[T]) shrink() {
	if cap(b.text) > keptSize {
		b.text = nil
	}
}

func (b *batch[T]) reset(file string, line int) {
	*b = batch[T]{text: b.text[:0], file: file, line: line, part: b.part, done: b.done}
}

// read cuts the files into batches.
func (p *pipeline[T]) read(ctx context.Context, files []File) {
	for _, f := range files {
		err := p.readFile(ctx, f)
		if err == nil {
			continue
		}
		if b := p.take(ctx, f.Name(), 1); b != nil {
			b.readErr = err
			p.send(ctx, b)
		}
		return
	}
	if b := p.take(ctx, "", 1); b != nil {
		b.end = true
		p.send(ctx, b)
	}
}

func (p *pipeline[T]) readFile(ctx context.Context, f File) error {
	s, err := f.open(p.opts.Stdin)
	if err != nil {
		return err
	}
	defer s.Close()
	line := 1
	b := p.take(ctx, f.Name(), line)
	if b == nil {
		return ctx.Err()
	}
	b.opened = true
	for {
		end, readErr := b.fill(s)
		b.progress = Progress{File: f.Name(), Done: s.Stored(), Total: f.Size}
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			line += bytes.Count(b.text[:end], []byte{'\n'})
			b.text = b.text[:end]
			p.send(ctx, b)
			return &LineError{File: f.Name(), Line: line, Err: readErr}
		}
		if readErr != nil {
			p.send(ctx, b)
			return nil
		}
		line += bytes.Count(b.text[:end], []byte{'\n'})
		next := p.take(ctx, f.Name(), line)
		if next == nil {
			return ctx.Err()
		}
		next.text = append(next.text, b.text[end:]...)
		b.text = b.text[:end]
		if !p.send(ctx, b) {
			return ctx.Err()
		}
		b = next
	}
}

var errTooLong = fmt.Errorf("longer than %d bytes; do not log response objects: use level Request in the audit policy", MaxLine)

// fill reads until the batch is full and has a whole line, and returns where the last
// whole line ends. An error is io.EOF at the end of the file.
func (b *batch[T]) fill(r io.Reader) (end int, err error) {
	for searched := 0; ; {
		if len(b.text) == cap(b.text) {
			grown := make([]byte, len(b.text), max(batchSize, 2*cap(b.text)))
			copy(grown, b.text)
			b.text = grown
		}
		n, err := r.Read(b.text[len(b.text):cap(b.text)])
		b.text = b.text[:len(b.text)+n]
		if last := bytes.LastIndexByte(b.text[searched:], '\n'); last >= 0 {
			end = searched + last + 1
		}
		searched = len(b.text)
		switch {
		case err != nil:
			return end, err
		case len(b.text)-end > MaxLine:
			return end, errTooLong
		case end > 0 && len(b.text) >= batchSize/2:
			return end, nil
		}
	}
}

func (p *pipeline[T]) take(ctx context.Context, file string, line int) *batch[T] {
	select {
	case b := <-p.free:
		b.reset(file, line)
		return b
	case <-ctx.Done():
		return nil
	}
}

func (p *pipeline[T]) send(ctx context.Context, b *batch[T]) bool {
	if p.held.Acquire(ctx, b.weight()) != nil {
		return false
	}
	for _, to := range []chan *batch[T]{p.ordered, p.work} {
		select {
		case to <- b:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// decode is one worker.
func (p *pipeline[T]) decode(ctx context.Context) {
	var d Decoder
	for {
		select {
		case b := <-p.work:
			b.decode(&d, p.sink.Event)
			d.release()
			b.done <- struct{}{}
		case <-ctx.Done():
			return
		}
	}
}

func (b *batch[T]) decode(d *Decoder, add func(T, *Event)) {
	each := func(e *Event) { add(b.part, e) }
	for rest := b.text; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		events, err := d.Decode(line, each)
		if err != nil {
			broken := &LineError{File: b.file, Line: b.line + b.lines, Err: err}
			if !ended && errors.Is(err, ErrUnfinished) {
				b.unfinished = broken
				return
			}
			b.broken = append(b.broken, broken)
		}
		b.lines++
		b.events += events
		rest = after
	}
}

// merge merges the decoded batches, in order.
func (p *pipeline[T]) merge(ctx context.Context) (Summary, error) {
	var total Summary
	for {
		b, err := p.next(ctx)
		if err != nil {
			return total, err
		}
		if b.readErr != nil || b.end {
			return total, b.readErr
		}
		if err := total.add(b.opened, b.lines, b.events, len(b.text), b.broken, b.unfinished); err != nil {
			return total, err
		}
		p.sink.Merge(b.part)
		if p.opts.Progress != nil {
			b.progress.Lines = total.Lines
			p.opts.Progress(b.progress)
		}
		p.held.Release(b.weight())
		b.shrink()
		p.free <- b
	}
}

func (p *pipeline[T]) next(ctx context.Context) (*batch[T], error) {
	var b *batch[T]
	select {
	case b = <-p.ordered:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case <-b.done:
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Summary) add(opened bool, lines, events, size int, broken []*LineError, unfinished *LineError) error {
	if opened {
		s.Files++
	}
	s.Lines += lines
	s.Events += events
	s.Bytes += int64(size)
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
