package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// DocumentOptions say which objects of files are read, and how.
type DocumentOptions struct {
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
	// APIVersion and Kind are what the object says it is; both empty for what is no API
	// object at all.
	APIVersion, Kind string

	part part
}

// ReadDocuments calls a function with each wanted object of the files, in their order,
// and returns what they are called together. Paths, formats and errors are those of
// [LoadFiles], but a document that does not say what it is can be wanted too.
func ReadDocuments(ctx context.Context, paths []string, opts DocumentOptions, take func(*Document) error) (origin string, err error) {
	files, err := inputs(paths)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		r := &documentReader{ctx: ctx, opts: opts, take: take}
		if err := r.read(file); err != nil {
			return "", err
		}
	}
	return originOf(files), nil
}

// originOf names files for people.
func originOf(files []input) string {
	origin := "file " + files[0].name
	if more := len(files) - 1; more > 0 {
		origin += fmt.Sprintf(" and %d more", more)
	}
	return origin
}

// progressEvery is how many objects are passed between two reports.
const progressEvery = 1000

// documentReader reads one file.
type documentReader struct {
	ctx  context.Context
	opts DocumentOptions
	take func(*Document) error

	file   input
	stored *counter
	passed int
	taken  int
}

func (r *documentReader) read(file input) (err error) {
	text, err := file.open(r.opts.Stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, text.close()) }()
	r.file, r.stored = file, text.counter
	return splitDocuments(file.name, text, r.document)
}

// document looks at one document, or one item of a large list.
func (r *documentReader) document(doc *document) error {
	if r.passed++; r.passed%progressEvery == 0 {
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
		if r.opts.Progress != nil {
			r.opts.Progress(Progress{Source: r.file.name, Done: r.stored.n, Total: r.file.size, Objects: r.taken})
		}
	}
	if h, known := peek(doc); known && !h.isList() && !r.opts.Wanted(h.APIVersion, h.Kind, doc.text) {
		return nil
	}
	p, empty, err := doc.whole()
	if empty || err != nil {
		return err
	}
	p.outline = &outline{}
	return r.element(p, 0)
}

// element takes one object, or the items of a list.
func (r *documentReader) element(p part, depth int) error {
	h, err := p.head()
	switch {
	case err != nil:
		return err
	case h.isList() && h.APIVersion != "":
		return p.items(h, depth, func(item part) error { return r.element(item, depth+1) })
	case !r.opts.Wanted(h.APIVersion, h.Kind, p.json):
		return p.introduced(h)
	}
	if err := p.validate(); err != nil {
		return err
	}
	r.taken++
	return r.take(&Document{APIVersion: h.APIVersion, Kind: h.Kind, part: p})
}

// introduced reports what does not say what it is.
func (p part) introduced(h head) error {
	switch {
	case h.Kind == "":
		return p.fail(0, "", errors.New("document has no kind"))
	case h.APIVersion == "":
		return p.fail(0, "", fmt.Errorf("%s has no apiVersion", h.Kind))
	}
	return nil
}

// Decode reads the object's fields into a value; those that it has no room for are
// passed over.
func (d *Document) Decode(into any) error {
	if err := json.Unmarshal(d.part.json, into); err != nil {
		return d.part.jsonError(head{APIVersion: d.APIVersion, Kind: d.Kind}, err)
	}
	return nil
}

// JSON is the object. It is not to be changed.
func (d *Document) JSON() []byte { return d.part.json }

// Describe names the object: "ConfigMap kube-system/aws-auth".
func (d *Document) Describe() string {
	return d.part.describe(head{APIVersion: d.APIVersion, Kind: d.Kind})
}

// Fail makes an error about the value at a path of the object.
func (d *Document) Fail(err error, path ...string) error {
	located := d.part.errorOnLine(d.Line(path...), err)
	located.Object, located.Field = d.Describe(), strings.Join(path, ".")
	return located
}

// File is the path of the file, as it was given or found.
func (d *Document) File() string { return d.part.file }

// Line is the line of the file, from 1, on which the value at a path begins, or of the
// nearest value around it.
func (d *Document) Line(path ...string) int { return d.part.lineOf(path) }

// TextLine is the line of the file, from 1, on which the first line of a string
// begins. It is not ok if the string's lines are not lines of the file, as in JSON.
func (d *Document) TextLine(path ...string) (line int, ok bool) { return d.part.textLine(path) }

func (p part) lineOf(path []string) int {
	if p.yaml {
		return p.line + p.yamlNode(path).Line - 1
	}
	return p.line + countLines(p.text[:p.offset+findJSON(p.json, path)])
}

// findJSON finds where the value at a path begins, or the nearest one around it.
func findJSON(text []byte, path []string) int {
	at := max(skipSpace(text, 0), 0)
	for _, name := range path {
		start, found := childJSON(text, at, name)
		if !found {
			break
		}
		at = start
	}
	return at
}

// childJSON finds a member of an object, or an item of an array, that begins at p.
func childJSON(text []byte, p int, name string) (start int, found bool) {
	switch text[p] {
	case '{':
		for m, ok := nextMember(text, p+1); ok; m, ok = nextMember(text, m.end) {
			if string(m.name) == name {
				return m.start, true
			}
		}
	case '[':
		at := p + 1
		for i := 0; ; i++ {
			if at = skipSpace(text, at); at >= 0 && text[at] == ',' {
				at = skipSpace(text, at+1)
			}
			if at < 0 || text[at] == ']' {
				return 0, false
			}
			if strconv.Itoa(i) == name {
				return at, true
			}
			if at = skipValue(text, at); at < 0 {
				return 0, false
			}
		}
	}
	return 0, false
}

// Source is the text of the whole document as it stands in the file, and the line of
// the file on which it begins, from 1. It is not to be changed.
func (d *Document) Source() (text []byte, line int) { return d.part.text, d.part.line }
