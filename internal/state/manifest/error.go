package manifest

import (
	"fmt"
	"strings"
)

// Error is a mistake in a file, with its position.
type Error struct {
	// File as it was given or found; "stdin" for standard input.
	File string
	Position
	// Object is the object of the document, if known: "Pod shop/api".
	Object string
	// Field is the path of the field in question: "spec.containers[0].name".
	Field string
	// Err is the mistake.
	Err error
}

// Position is a place in a file.
type Position struct {
	// Document counts the documents of the file from 1; 0 when the error is not
	// about one document.
	Document int
	// Item counts the items of a list document from 1; 0 outside of lists.
	Item int
	// Line in the file, from 1; 0 when unknown. In a compressed file it is the
	// line in the decompressed text.
	Line int
}

// Error renders "cluster.yaml: document 3, line 57: Pod shop/api: spec.nodeName:
// want a string, got a number".
func (e *Error) Error() string {
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

// Unwrap returns the mistake.
func (e *Error) Unwrap() error { return e.Err }
