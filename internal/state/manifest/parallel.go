package manifest

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

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
	// Reset empties the content of a batch, so that its memory is reused.
	Reset func(batch *T)
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
	batches := newBatcher[T](ctx, text.file)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for b := range batches.work {
				b.decode(p.Decode)
			}
		}()
	}
	splitErr := make(chan error, 1)
	go func() {
		defer batches.close()
		splitErr <- splitDocuments(file.Name, text, batches.add)
	}()
	if err := p.collect(ctx, batches); err != nil {
		cancel(err)
		return err
	}
	return <-splitErr
}

// collect applies all batches in the order of the file.
func (p *Parallel[T]) collect(ctx context.Context, batches *batcher[T]) error {
	for {
		var b *batch[T]
		select {
		case b = <-batches.ordered:
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
		p.Reset(&b.content)
		batches.recycle(b)
	}
}

// batch is a group of documents that a worker decodes.
type batch[T any] struct {
	docs    []document
	text    []byte // of all docs
	read    int64  // bytes of the stored file that have been read
	content T
	err     error // ends reading after content
	done    chan struct{}
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

// batcher collects documents in batches. Each batch goes to the workers and then, in
// the order of the file, to [Parallel.Apply].
type batcher[T any] struct {
	ctx     context.Context
	text    *filetext.Text
	work    chan *batch[T]
	ordered chan *batch[T]
	current *batch[T]
	// free are batches whose memory is reused.
	free sync.Pool
}

func newBatcher[T any](ctx context.Context, text *filetext.Text) *batcher[T] {
	// The queues are short, so that a slow consumer blocks the splitter.
	pending := 2 * runtime.GOMAXPROCS(0)
	b := &batcher[T]{
		ctx: ctx, text: text,
		work: make(chan *batch[T], pending), ordered: make(chan *batch[T], pending),
		free: sync.Pool{New: func() any { return &batch[T]{text: make([]byte, 0, batchSize)} }},
	}
	b.current = b.next()
	return b
}

func (b *batcher[T]) next() *batch[T] {
	next := b.free.Get().(*batch[T])
	next.done = make(chan struct{})
	return next
}

// recycle returns an empty batch for reuse.
func (b *batcher[T]) recycle(used *batch[T]) {
	clear(used.docs)
	used.docs, used.text = used.docs[:0], used.text[:0]
	if cap(used.text) <= 2*batchSize {
		b.free.Put(used)
	}
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
	for _, ch := range []chan *batch[T]{b.work, b.ordered} {
		select {
		case ch <- b.current:
		case <-b.ctx.Done():
			return context.Cause(b.ctx)
		}
	}
	b.current = b.next()
	return nil
}

// close sends the last batch.
func (b *batcher[T]) close() {
	_ = b.send() // the only error is the context's, which the caller has
	close(b.work)
	close(b.ordered)
}
