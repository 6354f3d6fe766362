package source

import (
	"fmt"
	"strings"
)

// InputError says what is wrong with a file, and where.
type InputError struct {
	// File as it was given or found; "stdin" for standard input.
	File string
	// Document counts the documents of the file from 1; 0 when the error is not
	// about one document.
	Document int
	// Item counts the items of a list document from 1; 0 outside of lists.
	Item int
	// Line in the file, from 1; 0 when unknown. In a compressed file it is the
	// line in the decompressed text.
	Line int
	// Object is what the document describes, as far as known: "Pod shop/api".
	Object string
	// Field is the path of the field in question: "spec.containers[0].name".
	Field string
	// Err is what is wrong.
	Err error
}

// Error renders "cluster.yaml: document 3, line 57: Pod shop/api: spec.nodeName:
// want a string, got a number".
func (e *InputError) Error() string {
	var b strings.Builder
	b.WriteString(e.File + ": ")
	var place []string
	if e.Document > 0 {
		place = append(place, fmt.Sprintf("document %d", e.Document))
	}
	if e.Item > 0 {
		place = append(place, fmt.Sprintf("item %d", e.Item))
	}
	if e.Line > 0 {
		place = append(place, fmt.Sprintf("line %d", e.Line))
	}
	if len(place) > 0 {
		b.WriteString(strings.Join(place, ", ") + ": ")
	}
	if e.Object != "" {
		b.WriteString(e.Object + ": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns what is wrong.
func (e *InputError) Unwrap() error { return e.Err }

// document is the text of one object, cut out of a file.
type document struct {
	file   string
	number int // in the file, from 1
	item   int // in its list, from 1; 0 outside of lists
	line   int // in the file, of the first byte of text
	text   []byte
	yaml   bool
	dash   bool // YAML text begins with the dash of the item
	// list is the head of the list that the text is an item of.
	list head
	// outline, if set, keeps what the lines of YAML were parsed into.
	outline *outline
}

// head is how a document introduces itself.
type head struct {
	APIVersion, Kind string
}

func (h head) group() string {
	group, _, found := strings.Cut(h.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

func (h head) version() string {
	if _, version, found := strings.Cut(h.APIVersion, "/"); found {
		return version
	}
	return h.APIVersion
}

// isList reports whether the document holds items: a v1 List, or a list of one
// kind such as PodList.
func (h head) isList() bool { return strings.HasSuffix(h.Kind, "List") }

// element is the head of items that do not introduce themselves, as in what the
// API serves.
func (h head) element() head {
	if h.Kind == "List" {
		return head{}
	}
	return head{APIVersion: h.APIVersion, Kind: strings.TrimSuffix(h.Kind, "List")}
}

// errorAt makes an error about the document, at a byte offset of its text.
func (d *document) errorAt(offset int, err error) *InputError {
	offset = min(max(offset, 0), len(d.text))
	return d.errorOnLine(d.line+countLines(d.text[:offset]), err)
}

func (d *document) errorOnLine(line int, err error) *InputError {
	return &InputError{File: d.file, Document: d.number, Item: d.item, Line: line, Err: err}
}
