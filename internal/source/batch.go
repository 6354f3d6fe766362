package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
)

// batchSize is how much text is handed to a worker at once, in bytes.
const batchSize = 512 << 10

// batch is some documents of a file on their way from the splitter through a
// worker into the state.
type batch struct {
	file    string
	docs    []document
	text    []byte // of all docs
	read    int64  // bytes of the file that have been read, as stored
	content content
	err     error // ends the reading after content
	done    chan struct{}
}

func (b *batch) decode(retain bool) {
	defer close(b.done)
	d := decoder{retain: retain, content: b.content}
	for i := range b.docs {
		if b.err = d.decode(&b.docs[i]); b.err != nil {
			break
		}
	}
	b.content = d.content
}

// batcher collects documents. Each batch goes to the workers and, in the same
// order, to whoever takes the results.
type batcher struct {
	ctx     context.Context
	stored  *counter
	work    chan *batch
	ordered chan *batch
	current *batch
	// free batches are used again for their memory.
	free sync.Pool
}

func newBatcher(ctx context.Context, stored *counter) *batcher {
	// Few batches wait, so that a slow consumer holds up the splitter.
	pending := 2 * runtime.GOMAXPROCS(0)
	b := &batcher{
		ctx: ctx, stored: stored,
		work: make(chan *batch, pending), ordered: make(chan *batch, pending),
		free: sync.Pool{New: func() any { return &batch{text: make([]byte, 0, batchSize)} }},
	}
	b.current = b.next()
	return b
}

func (b *batcher) next() *batch {
	next := b.free.Get().(*batch)
	next.done = make(chan struct{})
	return next
}

// recycle takes a batch back whose content has been used.
func (b *batcher) recycle(used *batch) {
	clear(used.docs)
	clear(used.content.objects)
	used.docs, used.text = used.docs[:0], used.text[:0]
	used.content.objects, used.content.skipped = used.content.objects[:0], used.content.skipped[:0]
	used.content.headers = nil
	if cap(used.text) <= 2*batchSize {
		b.free.Put(used)
	}
}

// add copies the document, whose text is valid during the call only.
func (b *batcher) add(doc *document) error {
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
	b.current.file = doc.file
	return nil
}

func (b *batcher) send() error {
	if len(b.current.docs) == 0 {
		return nil
	}
	b.current.read = b.stored.n
	for _, ch := range []chan *batch{b.work, b.ordered} {
		select {
		case ch <- b.current:
		case <-b.ctx.Done():
			return context.Cause(b.ctx)
		}
	}
	b.current = b.next()
	return nil
}

// close sends what is left.
func (b *batcher) close() {
	_ = b.send() // an error is that of the context, which the caller has
	close(b.work)
	close(b.ordered)
}

// startsJSON looks at the first byte that is not space. A brace begins JSON,
// unless what follows shows that it is YAML in flow style.
func startsJSON(text *stream) (bool, error) {
	ahead, err := text.Peek(windowSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	ahead = bytes.TrimLeft(ahead, " \t\r\n")
	if len(ahead) == 0 || ahead[0] != '{' && ahead[0] != '[' {
		return false, nil
	}
	inside := bytes.TrimLeft(ahead[1:], " \t\r\n")
	return len(inside) == 0 || ahead[0] == '[' || inside[0] == '"' || inside[0] == '}', nil
}

// newReader reads the rest of the stream that a window looks at.
func newReader(w *window) *bufio.Reader {
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(w.data()), w.r), windowSize)
}
