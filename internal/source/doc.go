// Package source reads what node authorization needs to know of a cluster: from
// manifests and snapshots with [LoadFiles], from an API server once with [List],
// and from an API server continuously with [Watch]. All three fill the same
// [State].
//
// Objects are trimmed as they are read. For each kind one function says which
// fields are kept, whatever the source; nothing else of an object outlives its
// decoding. Secrets and config maps are never asked for, and are skipped in
// files: the graph knows them by the names that others call them.
//
// [ReadDocuments] reads the same files for those who need other things of them:
// each object that they want as it is written, with its lines, and nothing of the
// others.
//
// What could not be read, for want of rights for example, is in
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
