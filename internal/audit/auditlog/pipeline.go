package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/semaphore"
)

const (
	// maxReaders is the maximum number of files that are read at the same time. Each may
	// need a window of 128 MiB, if it is compressed with zstd --long.
	maxReaders = 16
	// maxHeld is the maximum number of bytes in batches that wait for workers or are
	// being decoded, unless one line is longer. The number of batches grows with the
	// number of processors, and long lines would make each batch large.
	maxHeld = 128 << 20
	// maxAhead is the maximum number of bytes of text in files that are read ahead of the
	// one whose turn it is. Only their results are kept, which are smaller than the text.
	maxAhead = 256 << 20
	// minAhead is the size that a batch counts for at least.
	minAhead = 32 << 10
	// maxQueued is the maximum number of files, and of batches of one file, that wait.
	maxQueued = 1024
)

// pipeline reads several files at the same time, decodes batches of lines, and merges the
// results in the order of the files. The file whose turn it is never waits for the others.
type pipeline[T any] struct {
	sink    Sink[T]
	opts    Options
	workers int
	readers int
	// held bounds the text, and ahead what is read before its turn. tokens are one for each
	// batch that has text.
	held, ahead *semaphore.Weighted
	tokens      chan struct{}
	// queued is the maximum number of batches of one file that wait for their turn.
	queued int
	texts  chan []byte
	parts  chan T
	work   chan *batch[T]
}

// lane is a file that is being read.
type lane[T any] struct {
	file    File
	batches chan *batch[T]
	// turn is closed when all files before were merged.
	turn chan struct{}
}

func newPipeline[T any](sink Sink[T], opts Options, workers int) *pipeline[T] {
	readers := min(workers, maxReaders)
	buffers := 2*workers + 1
	return &pipeline[T]{
		sink: sink, opts: opts, workers: workers, readers: readers,
		held: semaphore.NewWeighted(maxHeld), ahead: semaphore.NewWeighted(maxAhead),
		// A reader that waits for its turn has one, so there are more than readers.
		tokens: make(chan struct{}, buffers+readers),
		texts:  make(chan []byte, buffers+readers), parts: make(chan T, buffers),
		work: make(chan *batch[T], buffers), queued: maxQueued,
	}
}

// start starts the workers and the readers. Lanes are sent in the order of the files.
func (p *pipeline[T]) start(ctx context.Context, files []File) <-chan *lane[T] {
	for range p.workers {
		go p.decode(ctx)
	}
	lanes, toRead := make(chan *lane[T], p.queued), make(chan *lane[T])
	for range min(p.readers, len(files)) {
		go func() {
			for l := range toRead {
				p.read(ctx, l)
			}
		}()
	}
	go func() {
		defer close(lanes)
		defer close(toRead)
		for _, f := range files {
			l := &lane[T]{file: f, batches: make(chan *batch[T], p.queued), turn: make(chan struct{})}
			for _, to := range []chan<- *lane[T]{lanes, toRead} {
				select {
				case to <- l:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return lanes
}

// read cuts a file into batches.
func (p *pipeline[T]) read(ctx context.Context, l *lane[T]) {
	defer close(l.batches)
	if err := p.readFile(ctx, l); err != nil && ctx.Err() == nil {
		l.send(ctx, &batch[T]{file: l.file, readErr: err})
	}
}

func (l *lane[T]) send(ctx context.Context, b *batch[T]) bool {
	select {
	case l.batches <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *pipeline[T]) readFile(ctx context.Context, l *lane[T]) error {
	s, err := l.file.open(p.opts.Stdin)
	if err != nil {
		return err
	}
	defer s.Close()
	line := 1
	var rest []byte
	for opened := true; ; opened = false {
		b := p.take(ctx)
		if b == nil {
			return ctx.Err()
		}
		b.file, b.line, b.opened, b.text = l.file, line, opened, append(b.text, rest...)
		end, readErr := b.fill(s)
		b.progress = Progress{File: l.file.Name(), Done: s.Stored(), Total: l.file.Size}
		ended := errors.Is(readErr, io.EOF)
		if ended {
			end = len(b.text)
		}
		rest = append(rest[:0], b.text[end:]...)
		b.text = b.text[:end]
		line += bytes.Count(b.text, []byte{'\n'})
		switch {
		case !p.send(ctx, l, b):
			return ctx.Err()
		case ended:
			return nil
		case readErr != nil:
			return &LineError{File: l.file.Name(), Line: line, Reason: readErr.Error()}
		}
		if cap(rest) > keptSize && len(rest) < batchSize {
			rest = bytes.Clone(rest)
		}
	}
}

// take returns an empty batch; nil if the context ends.
func (p *pipeline[T]) take(ctx context.Context) *batch[T] {
	select {
	case p.tokens <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	b := &batch[T]{done: make(chan struct{}, 1), wantsFirst: p.opts.Opened != nil}
	select {
	case b.text = <-p.texts:
	default:
	}
	select {
	case b.part = <-p.parts:
	default:
		b.part = p.sink.New()
	}
	return b
}

// send sends a batch to the merger and to the workers. It waits only for its turn before it
// holds what the file whose turn it is may need.
func (p *pipeline[T]) send(ctx context.Context, l *lane[T], b *batch[T]) bool {
	if !p.readAhead(ctx, l, b) || !l.send(ctx, b) || p.held.Acquire(ctx, b.weight()) != nil {
		return false
	}
	select {
	case p.work <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// readAhead waits until the batch may be read ahead, or it is the file's turn.
func (p *pipeline[T]) readAhead(ctx context.Context, l *lane[T], b *batch[T]) bool {
	select {
	case <-l.turn:
		return true
	default:
	}
	size := min(max(int64(len(b.text)), minAhead), maxAhead)
	if p.ahead.TryAcquire(size) {
		b.ahead = size
		return true
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-l.turn:
			cancel()
		case <-stop:
		}
	}()
	if p.ahead.Acquire(waiting, size) == nil {
		b.ahead = size
	}
	return ctx.Err() == nil
}

// decode is one worker.
func (p *pipeline[T]) decode(ctx context.Context) {
	var d Decoder
	add := p.sink.Event()
	for {
		select {
		case b := <-p.work:
			b.decode(&d, add)
			d.release()
			p.release(b)
			b.done <- struct{}{}
		case <-ctx.Done():
			return
		}
	}
}

// release gives back what a batch holds for its text.
func (p *pipeline[T]) release(b *batch[T]) {
	p.held.Release(b.weight())
	if cap(b.text) <= keptSize {
		select {
		case p.texts <- b.text[:0]:
		default:
		}
	}
	b.text = nil
	<-p.tokens
}

func (p *pipeline[T]) merge(ctx context.Context, lanes <-chan *lane[T]) (Summary, error) {
	var total Summary
	for {
		select {
		case l, more := <-lanes:
			if !more {
				return total, context.Cause(ctx)
			}
			close(l.turn)
			if err := p.mergeFile(ctx, l, &total); err != nil {
				return total, err
			}
		case <-ctx.Done():
			return total, context.Cause(ctx)
		}
	}
}

func (p *pipeline[T]) mergeFile(ctx context.Context, l *lane[T], total *Summary) error {
	for {
		select {
		case b, more := <-l.batches:
			if !more {
				return context.Cause(ctx)
			}
			if b.readErr != nil {
				return b.readErr
			}
			if err := p.mergeBatch(ctx, b, total); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *pipeline[T]) mergeBatch(ctx context.Context, b *batch[T], total *Summary) error {
	select {
	case <-b.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := total.add(b.opened, b.lines, b.events, b.broken, b.unfinished); err != nil {
		return err
	}
	if b.opened && p.opts.Opened != nil {
		p.opts.Opened(b.file, b.first)
	}
	p.sink.Merge(b.part)
	if p.opts.Progress != nil {
		b.progress.Lines = total.Lines
		p.opts.Progress(b.progress)
	}
	if b.ahead > 0 {
		p.ahead.Release(b.ahead)
	}
	select {
	case p.parts <- b.part:
	default:
	}
	return nil
}

const (
	batchSize = 256 << 10
	// keptSize is the maximum size of a buffer that is reused.
	keptSize = 4 * batchSize
)

// batch is whole lines of one file.
type batch[T any] struct {
	text []byte
	file File
	line int // number of the first line, from 1
	// opened is true for the first batch of a file; first is then the first line, if it is
	// wanted.
	opened     bool
	wantsFirst bool
	first      []byte
	progress   Progress
	readErr    error
	// ahead is what the batch holds of the bound on what is read ahead.
	ahead int64

	part       T
	lines      int
	events     int
	broken     []*LineError
	unfinished *LineError
	done       chan struct{}
}

// weight returns the size of the batch that counts towards [maxHeld].
func (b *batch[T]) weight() int64 { return min(int64(cap(b.text)), maxHeld) }

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

func (b *batch[T]) decode(d *Decoder, add func(T, *Event)) {
	each := func(e *Event) { add(b.part, e) }
	for rest := b.text; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if b.lines == 0 && b.opened && b.wantsFirst {
			b.first = bytes.Clone(line)
		}
		events, err := d.Decode(line, each)
		if err != nil {
			broken := &LineError{File: b.file.Name(), Line: b.line + b.lines, Reason: err.Error()}
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
