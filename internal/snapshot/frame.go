package snapshot

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// frame is the place of compressed data.
type frame struct {
	offset, stored, size int
}

// compressor makes frames.
type compressor struct {
	encoder *zstd.Encoder
	body    []byte
}

func newCompressor() (*compressor, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return &compressor{encoder: encoder}, nil
}

// add appends a frame to the body.
func (c *compressor) add(raw []byte) (frame, error) {
	if len(raw) > maxFrame {
		return frame{}, fmt.Errorf("an object of %d bytes is larger than a snapshot can hold", len(raw))
	}
	f := frame{offset: len(c.body), size: len(raw)}
	c.body = c.encoder.EncodeAll(raw, c.body)
	f.stored = len(c.body) - f.offset
	return f, nil
}

func newDecompressor() (*zstd.Decoder, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecoderMaxWindow(maxFrame))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return d, nil
}

// decompress returns the data of a frame. Into is reused, if it is large enough.
func (f *File) decompress(at frame, into []byte) ([]byte, error) {
	stored := f.body[at.offset : at.offset+at.stored]
	if cap(into) < at.size {
		// Most of what a frame claims has to be there.
		into = make([]byte, 0, min(at.size, freeExpansion/64+maxExpansion*at.stored))
	}
	raw, err := f.decoder.DecodeAll(stored, into[:0])
	if err != nil {
		return nil, err
	}
	if len(raw) != at.size {
		return nil, fmt.Errorf("has %d bytes instead of %d", len(raw), at.size)
	}
	return raw, nil
}
