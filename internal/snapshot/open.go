package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// PrefixLength is how many bytes [Is] needs.
const PrefixLength = len(magic)

// Is reports whether a file that begins with these bytes is a snapshot in binary form.
func Is(prefix []byte) bool { return bytes.HasPrefix(prefix, []byte(magic[:8])) }

// File is an open snapshot. Its methods are safe for concurrent use.
type File struct {
	// Header is the text of the header.
	Header   []byte
	Sections []*Section

	body    []byte
	decoder *zstd.Decoder
	stored  int
}

// Open reads a snapshot, and checks that it is whole.
func Open(r io.Reader) (*File, error) {
	rest, err := readWhole(r)
	if err != nil {
		return nil, err
	}
	f := &File{stored: len(rest) + prefixLength}
	if f.decoder, err = newDecompressor(); err != nil {
		return nil, err
	}
	c := &cursor{rest: rest}
	header := frame{size: c.number(maxFrame), stored: c.number(maxFile)}
	directory := frame{size: c.number(maxDirectory), stored: c.number(maxFile)}
	directory.offset = header.stored
	if c.err != nil || header.stored+directory.stored > len(c.rest) {
		return nil, damaged("its beginning", "%v", errShort)
	}
	f.body = c.rest
	if f.Header, err = f.decompress(header, nil); err != nil {
		return nil, damaged("its header", "%v", err)
	}
	raw, err := f.decompress(directory, nil)
	if err != nil {
		return nil, damaged("its directory", "%v", err)
	}
	f.body = f.body[header.stored+directory.stored:]
	if err := f.readDirectory(raw); err != nil {
		return nil, damaged("its directory", "%v", err)
	}
	return f, nil
}

// readWhole returns what follows the prefix, if it has the length and the checksum that this states.
func readWhole(r io.Reader) ([]byte, error) {
	prefix := make([]byte, prefixLength)
	n, err := io.ReadFull(r, prefix)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, fmt.Errorf("snapshot is incomplete: it ends after %d bytes; "+takeAgain, n)
	case err != nil:
		return nil, fmt.Errorf("read: %w", err)
	case string(prefix[:len(magic)]) != magic:
		return nil, errors.New("snapshot was changed on the way, as by a transfer in text mode; " + takeAgain)
	}
	fixed := prefix[len(magic):]
	if v := binary.LittleEndian.Uint32(fixed); v != version {
		return nil, fmt.Errorf("snapshot has version %d of the binary form, and this version of node-authorizer reads version %d; "+
			"use a newer one, or take the snapshot with --format json", v, version)
	}
	length, sum := binary.LittleEndian.Uint64(fixed[4:]), fixed[12:]
	if length > maxFile {
		return nil, damaged("its beginning", "it states %d bytes, more than a snapshot may have", length)
	}
	var rest bytes.Buffer
	if _, err := io.Copy(&rest, io.LimitReader(r, int64(length)+1)); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	switch got := uint64(rest.Len()); {
	case got < length:
		return nil, fmt.Errorf("snapshot is incomplete: it ends after %d of %d bytes; "+takeAgain,
			prefixLength+rest.Len(), uint64(prefixLength)+length)
	case got > length:
		return nil, fmt.Errorf("data follows the end of the snapshot, at byte %d; "+takeAgain, uint64(prefixLength)+length)
	}
	if got := sha256.Sum256(rest.Bytes()); !bytes.Equal(got[:], sum) {
		return nil, errors.New("snapshot is damaged: its content does not have its checksum; " + takeAgain)
	}
	return rest.Bytes(), nil
}

func (f *File) readDirectory(raw []byte) error {
	c, expanded := &cursor{rest: raw}, 0
	place := func() frame {
		at := frame{offset: c.number(maxFile), size: c.number(maxFrame), stored: c.number(maxFile)}
		if at.offset+at.stored > len(f.body) {
			c.fail(errors.New("has a frame outside of the file"))
		}
		expanded += at.size
		return at
	}
	for range c.number(maxSections) {
		s := &Section{file: f, Kind: string(c.sized()), Objects: c.number(1 << 40), names: place()}
		for range c.number(uint64(len(c.rest))) {
			s.shapes = append(s.shapes, counted{place(), c.number(maxShapes)})
			if c.err != nil {
				return c.err
			}
		}
		rows := 0
		for range c.number(uint64(len(c.rest))) {
			b := blockPlace{counted: counted{place(), c.number(maxRows)}, text: c.number(maxFile)}
			b.first = key{string(c.sized()), string(c.sized())}
			b.last = key{string(c.sized()), string(c.sized())}
			rows += b.n
			expanded += b.text + rowSize*b.n
			if n := len(s.blocks); n > 0 && s.blocks[n-1].last.compare(b.first) >= 0 {
				c.fail(errors.New("has blocks in another order than that of their objects"))
			}
			if c.err != nil {
				return c.err
			}
			s.blocks = append(s.blocks, b)
		}
		if c.err == nil && rows != s.Objects {
			return fmt.Errorf("has %d objects of kind %s instead of %d", rows, s.Kind, s.Objects)
		}
		f.Sections = append(f.Sections, s)
	}
	if err := c.end(); err != nil {
		return err
	}
	if expanded > freeExpansion && expanded/maxExpansion > f.stored {
		return errTooLarge
	}
	return nil
}
