// Package manifest reads the objects of manifests: files, folders and standard input,
// in YAML or JSON, of any number of documents or lists of them, compressed or not. It
// knows how Kubernetes objects say what they are, and nothing else of them.
//
// [Read] hands out the objects that a caller wants, each as it is written, with its
// lines, and nothing of the others. [Parallel] reads large files with several
// goroutines.
//
// Memory follows what is kept. A list of any length is read item by item, in YAML if it
// is in block style, as kubectl prints it. One object may have 64 MiB. What is wrong
// with a file is an [Error], which names the file, the document and the line.
//
// JSON is cut by a splitter of our own, which finds where objects end and leaves it to
// their decoders whether they are valid, and have a field twice. BenchmarkSplitJSON
// compares it in one run with the decoder of github.com/go-json-experiment/json, which
// takes 2.1 to 2.5 times as long for a list as kubectl prints it, 1.2 to 1.8 times for a
// list in one line, as long for objects of one line each, 1.2 to 1.4 times for one
// object of 32 MiB, and 7 times for deep nesting. The decoder has no bound for the size
// of an object.
package manifest
