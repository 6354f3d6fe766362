package manifest

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
)

// batchSize is the size of the text of a batch, in bytes.
const batchSize = 512 << 10

// Parallel reads files with several goroutines. The decoded objects of a batch of
// documents are collected in a T.
type Parallel[T any] struct {
	// Stdin is the input for the path "-".
	Stdin io.Reader
	// Decode adds an object to the content of its batch. It is called concurrently
	// for different batches. The object is not validated yet.
	Decode func(into *T, d *Document) error
	// Apply is called with the content of each batch in the order of the file, never
	// concurrently. After the batch with an invalid document, reading ends with an
	// [Error].
	Apply func(batch *T) error
	// Progress is called after each batch with the number of bytes of the stored file
	// that have been read.
	Progress func(stored int64)
}

// Read reads one file. One goroutine splits the text into documents, others decode
// them, and the results are applied in the order of the file.
func (p *Parallel[T]) Read(ctx context.Context, file File) (err error) {
	text, err := file.open(p.Stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, text.Close()) }()

	// If reading ends early, Read does not wait for the goroutines: a read of
	// standard input may block forever.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The queue is short, so that a slow consumer blocks the splitter.
	batches := &batcher[T]{
		ctx: ctx, text: text.file, decode: p.Decode, ordered: make(chan *batch[T], 2*runtime.GOMAXPROCS(0)), current: newBatch[T](),
	}
	splitErr := make(chan error, 1)
	go func() {
		defer close(batches.ordered)
		err := splitDocuments(file.Name, text, batches.add)
		_ = batches.send() // the only error is the context's, which the caller has
		splitErr <- err
	}()
	if err := p.collect(ctx, batches.ordered); err != nil {
		cancel(err)
		return err
	}
	return <-splitErr
}

// collect applies all batches in the order of the file.
func (p *Parallel[T]) collect(ctx context.Context, ordered <-chan *batch[T]) error {
	for {
		var b *batch[T]
		select {
		case b = <-ordered:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if b == nil {
			return context.Cause(ctx)
		}
		<-b.done
		if err := p.Apply(&b.content); err != nil {
			return err
		}
		if b.err != nil {
			return b.err
		}
		p.Progress(b.read)
	}
}

// batch is a group of documents that one goroutine decodes.
type batch[T any] struct {
	docs    []document
	text    []byte // of all docs
	read    int64  // bytes of the stored file that have been read
	content T
	err     error // ends reading after content
	done    chan struct{}
}

func newBatch[T any]() *batch[T] {
	return &batch[T]{text: make([]byte, 0, batchSize), done: make(chan struct{})}
}

func (b *batch[T]) decode(decode func(*T, *Document) error) {
	defer close(b.done)
	visit := func(d *Document) error { return decode(&b.content, d) }
	for i := range b.docs {
		p, empty, err := b.docs[i].whole()
		if err == nil && !empty {
			err = p.each(0, visit)
		}
		if err != nil {
			b.err = err
			return
		}
	}
}

// batcher collects documents in batches. Each batch is decoded, and goes to [Parallel.Apply] in the order of the file.
type batcher[T any] struct {
	ctx     context.Context
	text    *filetext.Text
	decode  func(*T, *Document) error
	ordered chan *batch[T]
	current *batch[T]
}

// add copies the document, whose text is valid during the call only.
func (b *batcher[T]) add(doc *document) error {
	if len(b.current.text)+len(doc.text) > batchSize {
		if err := b.send(); err != nil {
			return err
		}
	}
	begin := len(b.current.text)
	b.current.text = append(b.current.text, doc.text...)
	d := *doc
	d.text = b.current.text[begin:]
	b.current.docs = append(b.current.docs, d)
	return nil
}

func (b *batcher[T]) send() error {
	if len(b.current.docs) == 0 {
		return nil
	}
	b.current.read = b.text.Stored()
	select {
	case b.ordered <- b.current:
		go b.current.decode(b.decode)
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
	b.current = newBatch[T]()
	return nil
}
