package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/internal/filetext"
)

// Options are options for reading files.
type Options struct {
	// Stdin is the input for the path "-".
	Stdin io.Reader
	// Progress, if set, is called from time to time.
	Progress func(Progress)
	// Wanted selects objects by their type and text, in YAML or JSON. An object that
	// is not wanted is cheap: it is not parsed, and mistakes in it are not reported.
	Wanted func(apiVersion, kind string, text []byte) bool
}

// Document is one unchanged object of a file. It is valid only during the call that
// gets it.
type Document struct {
	// Type is the type that the object states; empty if it is not an API object.
	Type

	part part
}

// Read calls a function with each wanted object of the files, in their order, and
// returns the names of the files. A document without a type can be wanted too.
// The first invalid document ends reading with an [Error].
func Read(ctx context.Context, paths []string, opts Options, take func(*Document) error) (names []string, err error) {
	files, err := Files(paths)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		r := &reader{ctx: ctx, opts: opts, visit: take}
		if err := r.read(file); err != nil {
			return nil, err
		}
	}
	return Names(files), nil
}

// Names returns the names of files, for messages.
func Names(files []File) []string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	return names
}

// Progress is the progress of reading.
type Progress struct {
	// Source is the file, or the resource of a cluster, that is being read.
	Source string
	// Done and Total are in bytes of the stored file, and in objects for a resource.
	// Total is 0 when it is unknown.
	Done, Total int64
	// Objects is how many objects have been kept so far, of all sources.
	Objects int
}

// progressEvery is the number of objects between two reports.
const progressEvery = 1000

// reader reads one file.
type reader struct {
	ctx   context.Context
	opts  Options
	visit func(*Document) error

	file   File
	text   *filetext.Text
	passed int
	kept   int
}

func (r *reader) read(file File) (err error) {
	text, err := file.open(r.opts.Stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, text.Close()) }()
	r.file, r.text = file, text.file
	return splitDocuments(file.Name, text, r.document)
}

// document handles one document, or one item of a large list.
func (r *reader) document(doc *document) error {
	if r.passed++; r.passed%progressEvery == 0 {
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
		if r.opts.Progress != nil {
			r.opts.Progress(Progress{Source: r.file.Name, Done: r.text.Stored(), Total: r.file.Size, Objects: r.kept})
		}
	}
	if t, known := peek(doc); known && !t.isList() && !r.opts.Wanted(t.APIVersion, t.Kind, doc.text) {
		return nil
	}
	p, empty, err := doc.whole()
	if empty || err != nil {
		return err
	}
	return p.each(0, r.object)
}

// object passes an object to the caller if it is wanted.
func (r *reader) object(d *Document) error {
	if !r.opts.Wanted(d.APIVersion, d.Kind, d.JSON()) {
		return d.CheckType()
	}
	if err := d.Validate(); err != nil {
		return err
	}
	r.kept++
	return r.visit(d)
}

// CheckType returns an error if the object lacks apiVersion or kind.
func (d *Document) CheckType() error {
	switch {
	case d.Kind == "":
		return d.part.fail(0, "", errors.New("document has no kind"))
	case d.APIVersion == "":
		return d.part.fail(0, "", fmt.Errorf("%s has no apiVersion", d.Kind))
	}
	return nil
}

// Validate returns an error if the object is not valid JSON, or has a duplicate
// field.
func (d *Document) Validate() error { return d.part.validate() }

// Decode decodes the object into a value; unknown fields are ignored.
func (d *Document) Decode(into any) error {
	if err := json.Unmarshal(d.part.json, into); err != nil {
		return d.part.jsonError(d.Type, err)
	}
	return nil
}

// JSON returns the object as JSON. It must not be changed.
func (d *Document) JSON() []byte { return d.part.json }

// Describe names the object: "ConfigMap kube-system/aws-auth".
func (d *Document) Describe() string {
	return d.part.describe(d.Type)
}

// Fail returns an error about the value at a path of the object.
func (d *Document) Fail(err error, path ...string) error {
	located := d.part.errorOnLine(d.Line(path...), err)
	located.Object, located.Field = d.Describe(), strings.Join(path, ".")
	return located
}

// Position returns where the object begins. For an item of a YAML list that was
// parsed as a whole, it has the line of the list. It is cheaper than [Document.Line].
func (d *Document) Position() Position {
	p := Position{Document: d.part.number, Item: d.part.item, Line: d.part.line}
	if !d.part.yaml {
		p.Line += d.part.lines
	}
	return p
}

// File returns the path of the file, as it was given or found.
func (d *Document) File() string { return d.part.file }

// Line returns the line of the file, from 1, on which the value at a path begins, or
// the nearest enclosing value.
func (d *Document) Line(path ...string) int { return d.part.lineOf(path) }

// TextLine returns the line of the file, from 1, on which the first line of a string
// begins. ok is false if the string's lines are not lines of the file, as in JSON.
func (d *Document) TextLine(path ...string) (line int, ok bool) { return d.part.textLine(path) }

// Source returns the unchanged text of the whole document, and the line of the file
// on which it begins, from 1. The text must not be changed.
func (d *Document) Source() (text []byte, line int) { return d.part.text, d.part.line }
