package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
)

// File is an open snapshot that is read in parts. Its methods are safe for concurrent use.
type File struct {
	// Header is the text of the header.
	Header []byte

	file    io.ReaderAt
	decoder *zstd.Decoder
	blocks  []block
}

// Open reads the header and the index of a snapshot of this size. It returns nil without an error if the file
// does not end with an index.
func Open(file io.ReaderAt, size int64) (*File, error) {
	var end [endLength]byte
	if size < skippableHeader+int64(endLength) {
		return nil, nil
	}
	if _, err := file.ReadAt(end[:], size-int64(endLength)); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if string(end[8:]) != magic {
		return nil, nil
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecoderMaxWindow(maxFrame))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	f := &File{file: file, decoder: decoder}
	if err := f.readIndex(binary.LittleEndian.Uint64(end[:]), size); err != nil {
		return nil, damaged("its index", err)
	}
	return f, nil
}

// readIndex reads an index of that length, and the header.
func (f *File) readIndex(length uint64, size int64) error {
	before := size - skippableHeader - int64(endLength)
	if length > uint64(min(before, maxFrame)) {
		return fmt.Errorf("it states a length of %d bytes", length)
	}
	body := before - int64(length)
	text, err := f.decompress(place{at: body + skippableHeader, Stored: int64(length), Size: maxFrame})
	if err != nil {
		return err
	}
	if len(text) > freeExpansion/2 && int64(len(text))/maxExpansion > size {
		return errTooLarge
	}
	var read index
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	at, expanded := int64(0), int64(0)
	next := func(p *place) error {
		if p.Stored < 0 || p.Stored > body-at || p.Size < 0 || p.Size > maxFrame {
			return errors.New("it has a frame outside of the file")
		}
		p.at, at, expanded = at, at+p.Stored, expanded+p.Size
		return nil
	}
	if err := next(&read.Header); err != nil {
		return err
	}
	for i := range read.Blocks {
		if err := next(&read.Blocks[i].place); err != nil {
			return err
		}
	}
	switch {
	case at != body:
		return fmt.Errorf("it is about %d bytes, and follows %d bytes", at, body)
	case expanded > freeExpansion && expanded/maxExpansion > size:
		return errTooLarge
	}
	f.blocks = read.Blocks
	f.Header, err = f.read(read.Header)
	return err
}

// read returns the text of a frame.
func (f *File) read(p place) ([]byte, error) {
	text, err := f.decompress(p)
	if err == nil && int64(len(text)) != p.Size {
		return nil, fmt.Errorf("it has %d bytes instead of %d", len(text), p.Size)
	}
	return text, err
}

func (f *File) decompress(p place) ([]byte, error) {
	stored := make([]byte, p.Stored)
	if _, err := f.file.ReadAt(stored, p.at); err != nil {
		return nil, err
	}
	// Most of what a frame claims has to be there.
	return f.decoder.DecodeAll(stored, make([]byte, 0, min(p.Size, blockTarget+maxExpansion*p.Stored)))
}

// Count returns how many objects of a kind there are.
func (f *File) Count(kind string) int {
	n := 0
	for _, b := range f.blocks {
		if b.Kind == kind {
			n += b.Objects
		}
	}
	return n
}

// Nodes returns the nodes that objects name. They may repeat.
func (f *File) Nodes() []string {
	var names []string
	for _, b := range f.blocks {
		names = append(names, b.Nodes...)
	}
	return names
}

// Selection selects objects of a kind. Another field that is empty stands for all of them.
type Selection struct{ Kind, Node, Namespace, Name string }

// mayHold reports whether a block may have objects of the selection.
func (b *block) mayHold(want Selection) bool {
	switch {
	case b.Kind != want.Kind, want.Node != "" && !slices.Contains(b.Nodes, want.Node):
		return false
	case want.Name != "" && want.Namespace != "":
		at := key(want.Namespace, want.Name)
		return b.First <= at && at <= b.Last
	case want.Namespace != "":
		return b.First < want.Namespace+"0" && want.Namespace+"/" <= b.Last // "0" follows "/"
	}
	return true
}

// Read calls a function with each object that may be of the selection, in their order, as text that is valid
// during the call only. It leaves out most others. It stops at the first error.
func (f *File) Read(ctx context.Context, want Selection, visit func(text []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for pending := range f.find(ctx, want) {
		result := <-pending
		for _, line := range result.lines {
			if result.err = visit(line); result.err != nil {
				break
			}
		}
		if b := result.of; result.err != nil {
			return damaged(fmt.Sprintf("objects of kind %s in bytes %d to %d", b.Kind, b.at, b.at+b.Stored), result.err)
		}
	}
	return context.Cause(ctx)
}

// found has the lines of a block that may be of a selection.
type found struct {
	of    *block
	lines [][]byte
	err   error
}

// find decompresses blocks, some at the same time, and returns what it finds in their order.
func (f *File) find(ctx context.Context, want Selection) <-chan chan found {
	words, blocks := want.words(), make(chan chan found, runtime.GOMAXPROCS(0))
	go func() {
		defer close(blocks)
		for i := range f.blocks {
			b := &f.blocks[i]
			if !b.mayHold(want) {
				continue
			}
			result := make(chan found, 1)
			select {
			case blocks <- result:
			case <-ctx.Done():
				return
			}
			go func() {
				lines, err := f.linesOf(b, words)
				result <- found{b, lines, err}
			}()
		}
	}()
	return blocks
}

// linesOf returns the lines of a block that may have all words.
func (f *File) linesOf(b *block, words [][]byte) ([][]byte, error) {
	text, err := f.read(b.place)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte("\n")); n != b.Objects {
		return nil, fmt.Errorf("it has %d objects instead of %d", n, b.Objects)
	}
	var lines [][]byte
	for line := range bytes.Lines(text) {
		if hasAll(line, words) {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// words are the strings of the selection as JSON.
func (s Selection) words() [][]byte {
	var words [][]byte
	for _, value := range []string{s.Name, s.Node, s.Namespace} {
		if value == "" {
			continue
		}
		word, _ := jsontext.AppendQuote(nil, value) // replaces what is not UTF-8, as the writer did
		words = append(words, word)
	}
	return words
}

// hasAll reports whether a line may have all words: with an escape, it may have any.
func hasAll(line []byte, words [][]byte) bool {
	for _, word := range words {
		if !bytes.Contains(line, word) {
			return bytes.IndexByte(line, '\\') >= 0
		}
	}
	return true
}
