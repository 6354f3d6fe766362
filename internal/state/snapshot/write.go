package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
)

// Object is an object of a snapshot.
type Object struct {
	Kind, Node, Namespace, Name string
	// Text is the object as JSON in one line.
	Text []byte
}

// Write writes a snapshot. Objects of a kind follow each other, and among them the objects of a node. The
// same objects give the same bytes.
func Write(w io.Writer, header []byte, objects iter.Seq[Object]) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	out := &writer{to: w, encoder: encoder}
	if out.index.Header, err = out.frame(append(header, '\n')); err != nil {
		return err
	}
	for o := range objects {
		if out.current.Objects > 0 && (o.Kind != out.current.Kind || len(out.text) >= blockTarget) {
			if err := out.endBlock(); err != nil {
				return err
			}
		}
		out.add(o)
	}
	if out.current.Objects > 0 {
		if err := out.endBlock(); err != nil {
			return err
		}
	}
	return out.end()
}

type writer struct {
	to         io.Writer
	encoder    *zstd.Encoder
	compressed []byte
	index      index
	current    block
	text       []byte // of the current block
}

func (w *writer) add(o Object) {
	b, at := &w.current, key(o.Namespace, o.Name)
	if b.Objects == 0 {
		b.Kind, b.First, b.Last = o.Kind, at, at
	}
	b.Objects++
	b.First, b.Last = min(b.First, at), max(b.Last, at)
	if o.Node != "" && (len(b.Nodes) == 0 || b.Nodes[len(b.Nodes)-1] != o.Node) {
		b.Nodes = append(b.Nodes, o.Node)
	}
	w.text = append(append(w.text, o.Text...), '\n')
}

func (w *writer) endBlock() error {
	var err error
	if w.current.place, err = w.frame(w.text); err != nil {
		return fmt.Errorf("%s: %w", w.current.Kind, err)
	}
	w.index.Blocks = append(w.index.Blocks, w.current)
	w.current, w.text = block{}, w.text[:0]
	return nil
}

// frame compresses and writes a text.
func (w *writer) frame(text []byte) (place, error) {
	if len(text) > maxFrame {
		return place{}, fmt.Errorf("an object of %d bytes is larger than a snapshot can hold", len(text))
	}
	w.compressed = w.encoder.EncodeAll(text, w.compressed[:0])
	_, err := w.to.Write(w.compressed)
	return place{Stored: int64(len(w.compressed)), Size: int64(len(text))}, err
}

// end writes the index.
func (w *writer) end() error {
	text, err := json.Marshal(&w.index, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("encode index: %w", err)
	}
	if len(text) > maxFrame {
		return fmt.Errorf("an index of %d bytes is larger than a snapshot can hold", len(text))
	}
	compressed := w.encoder.EncodeAll(text, nil)
	frame := binary.LittleEndian.AppendUint32(nil, skippable)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(compressed)+endLength))
	frame = append(frame, compressed...)
	frame = binary.LittleEndian.AppendUint64(frame, uint64(len(compressed)))
	_, err = w.to.Write(append(frame, magic...))
	return err
}
