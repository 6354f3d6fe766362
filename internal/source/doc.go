// Package source reads what node authorization needs to know of a cluster: from
// manifests and snapshots with [LoadFiles], from an API server once with [List],
// and from an API server continuously with [Watch]. All three fill the same
// [State]. Package manifest reads the files; this package says which of their objects
// count, and what of them.
//
// Objects are trimmed as they are read. For each kind one function says which
// fields are kept, whatever the source; nothing else of an object outlives its
// decoding. Secrets and config maps are never asked for, and are skipped in
// files: the graph knows them by the names that others call them.
//
// What could not be read, for example because a right is missing, is in
// [State.Missing], together with the kinds of objects about which answers may
// therefore be incomplete.
//
// Files hold what somebody has put into them, and may refer to objects that they do
// not hold: [State.Gaps] lists these, so that their absence is not taken for an answer.
// A cluster, and a snapshot of one, is complete ([State.Complete]).
//
// A snapshot ([WriteSnapshot]) is the trimmed objects in one gzip-compressed
// file. It contains no secret or config map data, no environment values, no
// annotations but the mark of mirror pods, and no managed fields.
package source
