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
//
// A splitter in this package splits JSON. It only finds where objects end; their
// decoders check that they are valid and have no duplicate field. BenchmarkSplitJSON
// compares it in one run with the decoder of github.com/go-json-experiment/json. That
// decoder takes 2.1 to 2.5 times as long for a list that kubectl prints, 1.2 to 1.8
// times for a list in one line, the same time for objects of one line each, 1.2 to
// 1.4 times for one object of 32 MiB, and 7 times for deep nesting. It does not limit
// the size of an object.
package manifest
