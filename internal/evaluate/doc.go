// Package evaluate answers questions about one state of a cluster: whether a request
// is authorized, whether NodeRestriction admits a write, and why. The server, the
// command line and the replay of audit logs all ask an [Evaluator].
//
// An answer can rest on what is not there. What could not be read, is too old, or
// lacks in files is part of it: [Evaluator.Unread], [Evaluator.Lacking] and the error
// of a state that is too old name it, and say nothing where it could not change the
// answer. One table (reads.go) says which kinds of objects an answer comes from,
// separately for authorization and for admission.
package evaluate
