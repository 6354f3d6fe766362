package review

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/verdict"
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
// answer to each to out, as one compact JSON line, in order: the metadata and the spec of a SubjectAccessReview with its
// status, in its version, and for an AdmissionReview of
// admission.k8s.io/v1 one with the response and without the request. Documents are decoded by [DecodeAccessReview] and
// [DecodeAdmission].
//
// Stream writes the answers to all received documents before it waits for more input. It
// evaluates documents in parallel, in a fixed number of batches, so that memory does not grow
// with the stream. It ends with a *DocumentError at the first document that cannot be read,
// after the answers to the documents before it.
func Stream(ctx context.Context, evaluators Evaluators, in io.Reader, out io.Writer) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ordered := make(chan *batch, 2*runtime.GOMAXPROCS(0))
	s := &source{ctx: ctx, evaluators: evaluators, ordered: ordered, in: bufio.NewReaderSize(in, chunk), batch: newBatch(1, 1)}
	go s.read()
	return writeAnswers(ctx, ordered, out)
}

// batch is a part of the input with whole documents, and their answers.
type batch struct {
	input []byte
	spans []span
	// first is the number of the first document, and line the number of the first line,
	// both from 1.
	first, line int
	// broken is the error of the document that is the last span.
	broken error
	end    bool

	output  bytes.Buffer
	answers Summary
	err     error
	done    chan struct{} // is closed when the documents have been answered
}

func newBatch(first, line int) *batch {
	return &batch{first: first, line: line, done: make(chan struct{})}
}

// read cuts the input into batches until it ends, a document is broken, or the context ends.
func (s *source) read() {
	d := jsontext.NewDecoder(s, syntax())
	for {
		length, err := nextDocument(d)
		b := s.batch
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			b.end = true
			if s.err != nil {
				err = s.err
			}
			if !errors.Is(err, io.EOF) {
				b.broken = err
				rest := bytes.TrimLeft(b.input[b.complete():], " \t\r\n")
				b.spans = append(b.spans, span{len(b.input) - len(rest), len(b.input)})
			}
			s.send(b)
			return
		}
		end := int(d.InputOffset() - s.begin)
		b.spans = append(b.spans, span{end - length, end})
	}
}

var (
	errNotObject  = errors.New("want a JSON object")
	errIncomplete = errors.New("the input ends within the document")
	errTooLarge   = fmt.Errorf("larger than %d bytes", MaxDocument)
)

// nextDocument reads a document and returns its length. The error is io.EOF if there is none.
func nextDocument(d *jsontext.Decoder) (length int, err error) {
	kind := d.PeekKind()
	value, err := d.ReadValue()
	_, broken := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, errIncomplete
	case kind != jsontext.KindBeginObject && (err == nil || broken):
		return 0, errNotObject
	case broken:
		return 0, strictjson.Explain(err)
	case err == nil && len(value) > MaxDocument:
		return 0, errTooLarge
	}
	return len(value), err
}

// source is the input of the decoder that finds the documents. It copies what the decoder reads into the current batch.
type source struct {
	ctx        context.Context
	evaluators Evaluators
	ordered    chan<- *batch
	in         *bufio.Reader
	// batch begins at this position of the input.
	batch *batch
	begin int64
	// err is why the input cannot be read further.
	err error
}

// chunk is the size of the buffer for reading.
const chunk = 128 << 10

// Read sends the documents so far to be answered before it waits for more input.
func (s *source) Read(p []byte) (int, error) {
	if s.in.Buffered() == 0 && len(s.batch.spans) > 0 {
		s.split()
		if s.ctx.Err() != nil {
			return 0, context.Cause(s.ctx)
		}
	}
	n, err := s.in.Read(p)
	b := s.batch
	b.input = append(b.input, p[:n]...)
	if err == nil && len(b.input)-b.complete() > MaxDocument {
		err = errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// complete returns the position after the last complete document.
func (b *batch) complete() int {
	if len(b.spans) == 0 {
		return 0
	}
	return b.spans[len(b.spans)-1].end
}

// split sends the complete documents and begins a new batch with the remaining
// input.
func (s *source) split() {
	b := s.batch
	end := b.complete()
	s.batch = newBatch(b.first+len(b.spans), b.line+lines(b.input[:end]))
	s.begin += int64(end)
	s.batch.input = append(s.batch.input, b.input[end:]...)
	b.input = b.input[:end]
	s.send(b)
}

// send lets a batch be answered. The channel limits how many there are at a time.
func (s *source) send(b *batch) {
	select {
	case s.ordered <- b:
		go b.answer(s.ctx, s.evaluators)
	case <-s.ctx.Done():
	}
}

// lines counts the line breaks in b.
func lines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }

func (b *batch) answer(ctx context.Context, evaluators Evaluators) {
	defer close(b.done)
	for i, s := range b.spans {
		allowed, err := false, b.broken
		if err == nil || i < len(b.spans)-1 {
			allowed, err = evaluators.answer(ctx, b.input[s.start:s.end], &b.output)
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

func writeAnswers(ctx context.Context, ordered <-chan *batch, out io.Writer) (Summary, error) {
	var total Summary
	for {
		var b *batch
		select {
		case b = <-ordered:
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
	}
}

// DocumentError is the error of a document of a stream that could not be read.
type DocumentError struct {
	// Number is the number of the document, from 1.
	Number int
	// Line is the line on which the document begins, from 1.
	Line int
	Err  error
}

func (e *DocumentError) Error() string {
	return fmt.Sprintf("document %d, line %d: %v", e.Number, e.Line, e.Err)
}

func (e *DocumentError) Unwrap() error { return e.Err }

const wantEither = accessReviewKind + " of " + accessReviewVersion + " or " + wantAdmission

// answer writes the answer to a document of either kind. It reports whether the answer
// allows the request.
func (e *Evaluators) answer(ctx context.Context, document []byte, out *bytes.Buffer) (allowed bool, err error) {
	header, err := readHeader(document)
	if err != nil {
		return false, strictjson.Explain(err)
	}
	var text []byte
	switch header.Kind {
	case accessReviewKind:
		var review *AccessReview
		if review, err = DecodeAccessReview(document); err == nil {
			text, allowed, err = review.answerWith(ctx, e.Authorize, document)
		}
	case admissionKind:
		var review *AdmissionReview
		if review, err = DecodeAdmission(document, e.Reads); err == nil {
			answer := e.Admit(ctx, review.Request())
			text, allowed = review.Respond(answer), answer.Decision == verdict.Allow
		}
	default:
		err = &kindError{header, wantEither}
	}
	if err != nil {
		return false, err
	}
	out.Write(text)
	out.WriteByte('\n')
	return allowed, nil
}
