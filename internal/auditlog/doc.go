// Package auditlog reads the audit logs of kube-apiserver: lines of JSON, each an
// Event or an EventList of audit.k8s.io, in one file or in many, compressed or not.
//
// [Files] puts the files that a log was rotated into in the order in which they were
// written. [Read] reads them as a stream, decodes lines on all cores, and hands on
// what was made of them in the order of the log; memory does not grow with its
// length. [Decode] is one line's way in.
//
// An API server notes a request in up to three stages. Which of them says what was
// answered is in [Event.Answered]; a request that takes long, such as a watch, has
// two that do.
//
// Sources: https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/ and
// https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
package auditlog
