// Package manifest reads the objects of manifests: files, folders and standard input,
// in YAML or JSON, of any number of documents or lists of them, compressed or not. It
// reads apiVersion and kind of Kubernetes objects, and no other fields.
//
// [Read] returns the objects that a caller wants, each unchanged and with its lines,
// and skips the others. [Parallel] reads large files with several goroutines.
//
// Memory use depends on the kept objects only. A list of any length is read item by
// item, also a YAML list in block style, which kubectl prints. One object may have up
// to 64 MiB. A mistake in a file is an [Error], which names the file, the document
// and the line.
package manifest
