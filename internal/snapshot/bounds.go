package snapshot

import (
	"errors"
	"fmt"
)

const (
	// maxFile is the maximum size of a snapshot, in bytes: hundred times that of a cluster of
	// half a million pods.
	maxFile = 1 << 30
	// maxFrame is the maximum size of a decompressed frame. A frame holds an object at least.
	maxFrame = 64 << 20
	// maxDirectory is the maximum size of the decompressed directory, which has 50 bytes for a few
	// thousand objects.
	maxDirectory = 8 << 20
	// maxNames is the maximum number of namespaces and nodes of a section.
	maxNames = 1 << 22
	// maxShapes is the maximum number of shapes of a frame, and maxRows of objects of a block.
	maxShapes = 1 << 20
	maxRows   = 1 << 16
	// maxSections is more than there are kinds.
	maxSections = 1 << 10
	// maxExpansion is the maximum ratio of what is decompressed and decoded to the size of the file,
	// where an object counts as rowSize, and freeExpansion the size up to which the ratio does not count.
	maxExpansion  = 1000
	freeExpansion = 64 << 20
	rowSize       = 128
	// freeText is the length of the text of all objects up to which the ratio does not count.
	freeText = 1 << 30
)

const (
	// rowsPerBlock is how many objects the writer puts into a block.
	rowsPerBlock = 4096
	// frameTarget is the size at which the writer ends a frame.
	frameTarget = 1 << 20
)

// takeAgain is what to do about a snapshot that cannot be read.
const takeAgain = "copy the file again, or take the snapshot again"

// errTooLarge is the error of a snapshot that expands too much.
var errTooLarge = errors.New("it expands to far more than its size; " + takeAgain)

// damaged describes a place of a snapshot that does not decode.
func damaged(place, format string, args ...any) error {
	return fmt.Errorf("snapshot is damaged: %s: %s; "+takeAgain, place, fmt.Sprintf(format, args...))
}
