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
package manifest
