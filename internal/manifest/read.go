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

// Options say which objects of files are read, and how.
type Options struct {
	// Stdin is what the path "-" reads.
	Stdin io.Reader
	// Progress, if set, is called from time to time.
	Progress func(Progress)
	// Wanted is asked about each object by what it says it is, and by its text, in YAML
	// or JSON. An object that is not wanted costs next to nothing: it is not parsed, and
	// what is wrong within it stays unnoticed.
	Wanted func(apiVersion, kind string, text []byte) bool
}

// Document is one object of a file as it is written, before anybody has decided what
// to keep of it. It is valid during the call that it is handed to.
type Document struct {
	// Type is what the object says it is; empty for what is no API object at all.
	Type

	part part
}

// Read calls a function with each wanted object of the files, in their order,
// and returns what they are called together. A document that does not say what it is can
// be wanted too. The first document that is broken ends the reading with an [Error].
func Read(ctx context.Context, paths []string, opts Options, take func(*Document) error) (origin string, err error) {
	files, err := Files(paths)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		r := &reader{ctx: ctx, opts: opts, visit: take}
		if err := r.read(file); err != nil {
			return "", err
		}
	}
	return Origin(files), nil
}

// Origin names files for people: "file cluster.yaml and 2 more".
func Origin(files []File) string {
	origin := "file " + files[0].Name
	if more := len(files) - 1; more > 0 {
		origin += fmt.Sprintf(" and %d more", more)
	}
	return origin
}

// Progress says how far reading has come.
type Progress struct {
	// Source is the file, or the resource of a cluster, that is being read.
	Source string
	// Done and Total are in bytes as stored for a file, and in objects for a
	// resource. Total is 0 when it is unknown.
	Done, Total int64
	// Objects is how many objects have been kept so far, of all sources.
	Objects int
}

// progressEvery is how many objects are passed between two reports.
const progressEvery = 1000

// reader reads one file.
type reader struct {
	ctx   context.Context
	opts  Options
	visit func(*Document) error

	file   File
	text   *filetext.Text
	passed int
	taken  int
}

func (r *reader) read(file File) (err error) {
	text, err := file.open(r.opts.Stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, text.file.Close()) }()
	r.file, r.text = file, text.file
	return splitDocuments(file.Name, text, r.document)
}

// document looks at one document, or one item of a large list.
func (r *reader) document(doc *document) error {
	if r.passed++; r.passed%progressEvery == 0 {
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
		if r.opts.Progress != nil {
			r.opts.Progress(Progress{Source: r.file.Name, Done: r.text.Stored(), Total: r.file.Size, Objects: r.taken})
		}
	}
	if t, known := peek(doc); known && !t.isList() && !r.opts.Wanted(t.APIVersion, t.Kind, doc.text) {
		return nil
	}
	p, empty, err := doc.whole()
	if empty || err != nil {
		return err
	}
	return p.each(0, r.take)
}

// take takes an object if it is wanted.
func (r *reader) take(d *Document) error {
	if !r.opts.Wanted(d.APIVersion, d.Kind, d.JSON()) {
		return d.CheckType()
	}
	if err := d.Validate(); err != nil {
		return err
	}
	r.taken++
	return r.visit(d)
}

// CheckType returns an error if the object does not say what it is.
func (d *Document) CheckType() error {
	switch {
	case d.Kind == "":
		return d.part.fail(0, "", errors.New("document has no kind"))
	case d.APIVersion == "":
		return d.part.fail(0, "", fmt.Errorf("%s has no apiVersion", d.Kind))
	}
	return nil
}

// Validate returns an error if the object is not valid JSON, or has a field twice.
func (d *Document) Validate() error { return d.part.validate() }

// Decode reads the object's fields into a value; those that it has no room for are
// passed over.
func (d *Document) Decode(into any) error {
	if err := json.Unmarshal(d.part.json, into); err != nil {
		return d.part.jsonError(d.Type, err)
	}
	return nil
}

// JSON is the object. It is not to be changed.
func (d *Document) JSON() []byte { return d.part.json }

// Describe names the object: "ConfigMap kube-system/aws-auth".
func (d *Document) Describe() string {
	return d.part.describe(d.Type)
}

// Fail makes an error about the value at a path of the object.
func (d *Document) Fail(err error, path ...string) error {
	located := d.part.errorOnLine(d.Line(path...), err)
	located.Object, located.Field = d.Describe(), strings.Join(path, ".")
	return located
}

// Position is where the object begins; in a list that YAML was not cut into items of, it
// has the line of the list. It costs less than [Document.Line].
func (d *Document) Position() Position {
	p := Position{Document: d.part.number, Item: d.part.item, Line: d.part.line}
	if !d.part.yaml {
		p.Line += d.part.lines
	}
	return p
}

// File is the path of the file, as it was given or found.
func (d *Document) File() string { return d.part.file }

// Line is the line of the file, from 1, on which the value at a path begins, or of the
// nearest value around it.
func (d *Document) Line(path ...string) int { return d.part.lineOf(path) }

// TextLine is the line of the file, from 1, on which the first line of a string
// begins. It is not ok if the string's lines are not lines of the file, as in JSON.
func (d *Document) TextLine(path ...string) (line int, ok bool) { return d.part.textLine(path) }

// Source is the text of the whole document as it stands in the file, and the line of
// the file on which it begins, from 1. It is not to be changed.
func (d *Document) Source() (text []byte, line int) { return d.part.text, d.part.line }
