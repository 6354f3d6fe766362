package review

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
)

// Summary counts the documents of a stream.
type Summary struct {
	Documents int
	Allowed   int
}

// Evaluators answer the documents of a stream by their kind.
type Evaluators struct {
	Authorize Authorize
	Admit     Admit
	// Reads reports which objects Admit reads.
	Reads Reads
}

// Stream reads newline-delimited or concatenated documents from in and writes an
// answer to each to out, as one compact JSON line, in order: a SubjectAccessReview
// of authorization.k8s.io/v1 with its status added, and for an AdmissionReview of
// admission.k8s.io/v1 one with the response and without the request.
//
// Stream writes the answers to all received documents before it waits for more input. It
// evaluates documents in parallel, in a fixed number of batches, so that memory does not grow
// with the stream. It ends with a *DocumentError at the first document that cannot be read,
// after the answers to the documents before it.
func Stream(ctx context.Context, evaluators Evaluators, in io.Reader, out io.Writer) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	p := &pipeline{
		evaluators: evaluators,
		free:       make(chan *batch, 2*workers+1),
		work:       make(chan *batch, 2*workers+1),
		ordered:    make(chan *batch, 2*workers+1),
	}
	for range cap(p.free) {
		p.free <- &batch{done: make(chan struct{}, 1)}
	}
	for range workers {
		go p.answer(ctx)
	}
	go p.read(ctx, in)
	return p.write(ctx, out)
}

// pipeline connects one reader, several workers and one writer. Each batch goes
// from free through work and ordered back to free.
type pipeline struct {
	evaluators Evaluators
	free       chan *batch
	work       chan *batch
	ordered    chan *batch
}

// batch is a part of the input with whole documents, and their answers.
type batch struct {
	input []byte
	spans []span
	// first is the number of the first document, line that of the first line, both
	// from 1.
	first, line int
	// broken is the error of the document that follows the last span.
	broken error
	end    bool

	output  bytes.Buffer
	answers Summary
	err     error
	done    chan struct{}
}

func (b *batch) reset(first, line int) {
	b.input, b.spans = b.input[:0], b.spans[:0]
	b.first, b.line, b.broken, b.end = first, line, nil, false
	b.output.Reset()
	b.answers, b.err = Summary{}, nil
}

// minRead is the minimum buffer size for one Read.
const minRead = 128 << 10

// read cuts the input into batches until it ends or a document is broken.
func (p *pipeline) read(ctx context.Context, in io.Reader) {
	b := p.take(ctx, 1, 1)
	var f framer
	for b != nil {
		from := len(b.input)
		n, readErr := in.Read(b.space())
		b.input = b.input[:from+n]
		b.spans, b.broken = f.scan(b.input, from, b.spans)
		if b.broken == nil && readErr != nil {
			b.end = true
			b.broken = f.finish(len(b.input), readErr)
		}
		if b.broken != nil {
			b.end = true
			b.spans = append(b.spans, span{f.start, len(b.input)})
		}
		if b.end {
			p.send(ctx, b)
			return
		}
		if len(b.spans) > 0 {
			b = p.split(ctx, b, &f)
		}
	}
}

// space returns free space at the end of the buffer.
func (b *batch) space() []byte {
	if cap(b.input)-len(b.input) < minRead/2 {
		grown := make([]byte, len(b.input), max(minRead, 2*cap(b.input)))
		copy(grown, b.input)
		b.input = grown
	}
	return b.input[len(b.input):cap(b.input)]
}

// split sends the complete documents and returns a new batch that begins with the remaining
// input.
func (p *pipeline) split(ctx context.Context, b *batch, f *framer) *batch {
	end := b.spans[len(b.spans)-1].end
	next := p.take(ctx, b.first+len(b.spans), b.line+lines(b.input[:end]))
	if next == nil {
		return nil
	}
	next.input = append(next.input, b.input[end:]...)
	f.start -= end
	b.input = b.input[:end]
	if !p.send(ctx, b) {
		return nil
	}
	return next
}

func (p *pipeline) take(ctx context.Context, first, line int) *batch {
	select {
	case b := <-p.free:
		b.reset(first, line)
		return b
	case <-ctx.Done():
		return nil
	}
}

func (p *pipeline) send(ctx context.Context, b *batch) bool {
	for _, to := range []chan *batch{p.ordered, p.work} {
		select {
		case to <- b:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// answer is one worker.
func (p *pipeline) answer(ctx context.Context) {
	for {
		select {
		case b := <-p.work:
			b.answer(ctx, p.evaluators)
			b.done <- struct{}{}
		case <-ctx.Done():
			return
		}
	}
}

func (b *batch) answer(ctx context.Context, evaluators Evaluators) {
	a := newAnswerer(evaluators, &b.output)
	for i, s := range b.spans {
		allowed, err := false, b.broken
		if err == nil || i < len(b.spans)-1 {
			allowed, err = a.answer(ctx, b.input[s.start:s.end])
		}
		if err != nil {
			b.err = &DocumentError{Number: b.first + i, Line: b.line + lines(b.input[:s.start]), Err: err}
			return
		}
		b.answers.Documents++
		if allowed {
			b.answers.Allowed++
		}
	}
}

// write writes the answers in order.
func (p *pipeline) write(ctx context.Context, out io.Writer) (Summary, error) {
	var total Summary
	for {
		var b *batch
		select {
		case b = <-p.ordered:
		case <-ctx.Done():
			return total, context.Cause(ctx)
		}
		select {
		case <-b.done:
		case <-ctx.Done():
			return total, context.Cause(ctx)
		}
		if b.output.Len() > 0 {
			if _, err := out.Write(b.output.Bytes()); err != nil {
				return total, fmt.Errorf("writing answers: %w", err)
			}
		}
		total.Documents += b.answers.Documents
		total.Allowed += b.answers.Allowed
		if b.err != nil || b.end {
			return total, b.err
		}
		p.free <- b
	}
}
