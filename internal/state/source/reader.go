package source

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

// Reader makes a state from documents that a caller reads for other purposes too. It is not safe
// for concurrent use.
type Reader struct {
	loader   *loader
	content  content
	file     string
	expected *expectation
	taken    int
	// err is the first error. What follows it is not taken.
	err error
}

// NewReader returns a reader that makes a state without objects. Stdin and Progress of the options
// have no effect.
func NewReader(opts FileOptions) *Reader { return &Reader{loader: newLoader(opts)} }

// Wants reports whether a state may keep something of a document of this type.
func (r *Reader) Wants(apiVersion, kind string) bool {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	k, kept := kindOf(group, kind)
	return group == snapshotGroup || kept && (r.loader.opts.inventory() || !k.describe().inventory)
}

// Take adds a document that is wanted. The documents of one file have to follow each other. State
// returns the first error: the caller may have use for the other documents.
func (r *Reader) Take(d *manifest.Document) {
	if r.err == nil {
		r.err = r.take(d)
	}
}

func (r *Reader) take(d *manifest.Document) error {
	if r.expected == nil || d.File() != r.file {
		if err := r.endFile(); err != nil {
			return err
		}
		r.file, r.expected = d.File(), newExpectation(d.File())
	}
	r.taken++
	r.content.reset()
	if err := r.content.decode(d, r.loader.opts); err != nil {
		return err
	}
	return r.loader.apply(r.file, &r.content, r.expected)
}

// Taken returns how many documents were taken.
func (r *Reader) Taken() int { return r.taken }

// endFile checks that a file is complete.
func (r *Reader) endFile() error {
	if r.expected == nil {
		return nil
	}
	r.loader.plain = r.loader.plain || !r.expected.snapshot
	return r.expected.check()
}

// State returns the state when all documents are taken; nil if there were none. Origin says where
// the documents are from.
func (r *Reader) State(origin string) (*State, error) {
	if r.err != nil || r.taken == 0 {
		return nil, r.err
	}
	if err := r.endFile(); err != nil {
		return nil, err
	}
	r.loader.finish()
	r.loader.state.Origin = origin
	return r.loader.state, nil
}
