// Package snapshot is the form of snapshots. It knows nothing of Kubernetes' types: a snapshot is a header
// and objects, each a line of JSON, and each object has a kind, a name, and possibly a node.
//
// A file is zstd, so that every tool for zstd shows its text, and every reader of JSON reads the whole:
//
//	file  = frame(header), frame(block) ..., skippable frame(zstd(index), length of that, magic)
//	block = objects of one kind; the objects of a node follow each other
//
// The index has the length of each frame and, for each block, its kind, its nodes, and its first and last
// name. So a reader decompresses only the blocks that may hold what it looks for.
//
// Frames have checksums. A file without an index at its end is not read in parts: a program that reads the whole
// finds out whether it is cut, because the header counts the objects. A reader of files that an attacker
// wrote uses memory and time in proportion to the size of the file, within the ratios of the constants here.
package snapshot

import (
	"errors"
	"fmt"
)

const (
	// magic ends a snapshot with an index.
	magic = "NASindex"
	// endLength is the length of what follows the compressed index: its length, and magic.
	endLength = 8 + len(magic)
	// skippable begins a frame that decompressors skip, and is followed by the frame's length.
	// Source: RFC 8878, section 3.1.2.
	skippable       = 0x184D2A50
	skippableHeader = 8
	// maxFrame is the maximum size of a decompressed frame, in bytes. A frame holds an object at least.
	maxFrame = 64 << 20
	// maxExpansion is the maximum ratio of the decompressed size to the size of the file, and freeExpansion
	// the size up to which the ratio does not count.
	maxExpansion  = 1000
	freeExpansion = 64 << 20
	// blockTarget is the size of the text at which the writer ends a block.
	blockTarget = 1 << 20
)

// takeAgain is the remedy for a snapshot that cannot be read.
const takeAgain = "copy the file again, or take the snapshot again"

// errTooLarge is the error of a snapshot that expands too much.
var errTooLarge = errors.New("it expands to far more than its size")

// damaged describes a place of a snapshot that does not decode.
func damaged(place string, err error) error {
	return fmt.Errorf("snapshot is damaged: %s: %w; "+takeAgain, place, err)
}

// index has the places of the header and of all blocks; it is at the end of a file.
type index struct {
	Header place   `json:"header"`
	Blocks []block `json:"blocks"`
}

// place has the length of a frame, in bytes, compressed and not. The next frame follows it.
type place struct {
	Stored int64 `json:"stored"`
	Size   int64 `json:"size"`
	at     int64
}

// block describes a frame of objects.
type block struct {
	place
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
	// First and Last are the lowest and the highest key of its objects.
	First string `json:"first"`
	Last  string `json:"last"`
	// Nodes are the nodes that its objects name, each once.
	Nodes []string `json:"nodes,omitempty"`
}

// key is an object's name for comparison.
func key(namespace, name string) string { return namespace + "/" + name }
