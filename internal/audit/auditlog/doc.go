// Package auditlog reads the audit logs of kube-apiserver: lines of JSON, each an
// Event or an EventList of audit.k8s.io, in one file or in many, compressed or not.
//
// [Files] sorts the files of a rotated log by the time at which they were written. [Read]
// streams them, decompresses files and decodes lines on all cores, and passes the results on
// in the order of the log; memory does not grow with the length of the log. [Share] divides
// files between programs that do not talk to each other. [Decoder.Decode] decodes one line.
//
// An API server logs a request in up to three stages. [Event.Answered] reports whether a
// stage has the response status; a long-running request, such as a watch, has two such
// stages.
//
// Sources: https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/ and
// https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
package auditlog
