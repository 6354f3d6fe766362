// Package evaluate answers questions about one state of a cluster: whether a request
// is authorized, whether NodeRestriction admits a write, and why. The server, the
// command line and the replay of audit logs all ask an [Evaluator].
//
// A refusal can be wrong because state is missing: resources that could not be read, state
// that is too old, or objects that the files do not hold. [Evaluator.Unread],
// [Evaluator.Lacking] and the error of a state that is too old name what is missing, but
// only if it could change the answer. One table (reads.go) lists the kinds of objects that
// an answer depends on, separately for authorization and for admission.
package evaluate
