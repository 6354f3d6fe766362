// Package snapshot is the binary form of snapshots. It knows nothing of Kubernetes' types: a snapshot
// is a header and sections of objects, each a line of compact JSON, and what is written is what is read.
//
// Objects that are made from one template differ in few strings. So an object is stored as a shape,
// which is its text without these strings, and the strings are stored in columns:
//
//	file    = magic, version, length, SHA-256 of the rest, rest
//	rest    = frame(header), frame(directory), frames
//	frame   = length, length when stored, zstd
//	section = frame(names of namespaces and nodes), frames of shapes, blocks
//	block   = frame of columns: shape, name, namespace, uid, node, other, scope
//
// The directory has the counts and places of all frames, and the first and last object of each block.
// So a reader decompresses only what it needs, and reads the column of nodes before all others.
//
// Numbers are unsigned varints, except those of the first 52 bytes, which are little-endian. Texts are
// stored with the length of what they share with the text before.
//
// A file is read only if it has its stated length and checksum. A damaged or truncated file is an
// error, never a smaller cluster. A reader of files that an attacker wrote uses memory and time in
// proportion to the size of the file, within the ratios of the constants in bounds.go.
package snapshot
