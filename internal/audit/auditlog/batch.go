package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

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
