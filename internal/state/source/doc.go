// Package source reads the cluster state that node authorization needs: from
// manifests and snapshots with [LoadFiles], from an API server once with [List], and
// from an API server continuously with [Watch]. All three fill the same [State].
// Package manifest reads the files; this package selects the objects and fields.
//
// Objects are trimmed as they are read. For each kind one function defines which
// fields are kept, for every source; all other fields are dropped after decoding.
// Secrets and config maps are never requested, and are skipped in files: the graph
// knows them by the references of other objects.
//
// [State.Missing] lists what could not be read, for example because a right is
// missing, and the kinds of objects about which answers may therefore be incomplete.
//
// Files may refer to objects that they do not contain. [State.Gaps] lists these, so
// that an absent object is not taken for an answer. The state of a cluster, or of a
// snapshot of one, is complete ([State.Complete]).
//
// A snapshot ([WriteSnapshot]) holds the trimmed objects in one file, in the binary form of package
// snapshot or as lines of JSON.
// It contains no secret or config map data, no environment values, no managed fields,
// and no annotations except the one that marks mirror pods.
package source
