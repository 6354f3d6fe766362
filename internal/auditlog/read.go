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
	// MaxLine is the length in bytes beyond which a line is broken. Lines with what
	// was sent back (level RequestResponse) can be long.
	MaxLine = 256 << 20
	// MaxBroken is how many lines may be broken before what is read is taken for
	// something else than an audit log.
	MaxBroken = 100

	batchSize = 256 << 10
	// keptSize is how much room a batch keeps that had a long line.
	keptSize = 4 * batchSize
	// maxHeld is how many bytes of text wait for workers or are with them, unless one
	// line is longer: with many processors there are many batches, and long lines would
	// make each of them large.
	maxHeld = 128 << 20
)

// Sink is who is handed what was read. T is what is made of a part of the log.
type Sink[T any] struct {
	// New returns an empty part. There are few of them, which are used again.
	New func() T
	// Event adds an event, which is valid until it returns, to a part. It is called
	// concurrently for different parts.
	Event func(part T, e *Event)
	// Merge takes a part in, in the order of the log, and empties it.
	Merge func(part T)
}

// Options say how a log is read.
type Options struct {
	// Stdin is what the path [Stdin] reads.
	Stdin io.Reader
	// Progress, if set, is called from time to time, never concurrently.
	Progress func(Progress)
}

// Progress says how far reading has come.
type Progress struct {
	File string
	// Done and Total are in bytes as stored; Total is 0 when it is unknown.
	Done, Total int64
	// Lines is how many have been read, of all files.
	Lines int
}

// Summary counts what was read.
type Summary struct {
	Files int
	Lines int
	// Bytes are those of the text, decompressed.
	Bytes  int64
	Events int
	// Broken are the lines that could not be read, and were left out.
	Broken []*LineError
	// Unfinished are the ends of files in the middle of a line, as a log has that is
	// being written.
	Unfinished []*LineError
}

// LineError says which line could not be read.
type LineError struct {
	File string
	// Line counts from 1, in the decompressed text.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s: line %d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// Read reads files one after the other and hands their events to the sink. Lines are
// decoded in parallel, in batches whose number is fixed, so that memory does not grow
// with the log.
//
// A line that is broken is left out and is in the summary, so that a report can be
// made of the others. A file whose first line is broken, too many broken lines, and a
// file that cannot be read end the reading with an error, beside which the summary
// tells how far it came.
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

// pipeline connects one reader, several workers and the one who merges. Each batch
// goes from free through ordered and work back to free.
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
	line int // that the text begins with, from 1
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

// weight is what counts of a batch towards [maxHeld].
func (b *batch[T]) weight() int64 { return min(int64(cap(b.text)), maxHeld) }

// drop lets go of much room.
func (b *batch[T]) drop() {
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

var errTooLong = fmt.Errorf("longer than %d bytes; let the audit policy not log what is sent back (level Request)", MaxLine)

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
			d.forget()
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

// merge takes in what the workers have made, in order.
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
		b.drop()
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
			return fmt.Errorf("%w; and %d lines before: this is no audit log, or much of it is lost", b, MaxBroken)
		}
		s.Broken = append(s.Broken, b)
	}
	return nil
}
