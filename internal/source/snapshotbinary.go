package source

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/internal/manifest"
	"github.com/node-authorizer/node-authorizer/internal/snapshot"
)

// binaryLoader reads snapshots in binary form. The state is that of their text.
type binaryLoader struct {
	*loader
	ctx      context.Context
	name     string // of the file
	expected *expectation
	content  content
	// before is the number of objects of the file in the sections before.
	before int
}

// load reads a whole file.
func (b *binaryLoader) load(f *snapshot.File) error {
	if err := b.header(f); err != nil {
		return err
	}
	for _, s := range f.Sections {
		if err := b.section(s); err != nil {
			return err
		}
		b.before += s.Objects
	}
	return nil
}

func (b *binaryLoader) header(f *snapshot.File) error {
	header, err := binaryHeader(f)
	if err != nil {
		return &manifest.Error{File: b.name, Err: err}
	}
	b.expected.add(header)
	return b.applyHeader(b.name, header)
}

// binaryHeader decodes the header.
func binaryHeader(f *snapshot.File) (*snapshotHeader, error) {
	var header snapshotHeader
	if err := json.Unmarshal(f.Header, &header); err != nil {
		return nil, fmt.Errorf("header of the snapshot: %w", err)
	}
	return &header, knownSnapshot(header.APIVersion, header.Kind)
}

// kindOfSection returns the kind of a section's objects.
func kindOfSection(s *snapshot.Section) (kind, error) {
	for k := range kindCount {
		if k.String() == s.Kind {
			return k, nil
		}
	}
	return 0, fmt.Errorf("the snapshot has objects of kind %s, which are not known to this version of node-authorizer; use a newer one",
		s.Kind)
}

func (b *binaryLoader) section(s *snapshot.Section) error {
	k, err := kindOfSection(s)
	if err != nil {
		return &manifest.Error{File: b.name, Err: err}
	}
	if k.describe().inventory && !b.opts.inventory() {
		b.expected.countAll(k, s.Objects)
		return nil
	}
	rows := &rowReader{
		ctx: b.ctx, rowDecoder: newRowDecoder(k, b.opts.inventory()), state: b.state, retain: b.opts.Retain,
		alone: func(o apiObject, r *snapshot.Row) error { return b.applyObject(k, o, r) },
		each:  func() { b.expected.count(k); b.kept++; b.progress() },
	}
	err = rows.read(s, snapshot.Selection{})
	switch ended := context.Cause(b.ctx); {
	case ended != nil:
		return ended
	case err != nil:
		return &manifest.Error{File: b.name, Err: err}
	}
	return nil
}

// applyObject applies an object as one of any file.
func (b *binaryLoader) applyObject(k kind, o apiObject, r *snapshot.Row) error {
	line := b.before + r.At + 2 // after the header
	out := object{kind: k, api: o, position: manifest.Position{Document: line, Line: line}}
	if b.opts.Retain {
		var err error
		if out.encoded, err = encode(k, o); err != nil {
			return err
		}
	}
	b.content.reset()
	b.content.objects = append(b.content.objects, out)
	b.progress()
	return b.apply(b.name, &b.content, b.expected)
}

// progressEvery is the number of objects between two reports.
const progressEvery = 4096

func (b *binaryLoader) progress() {
	if b.opts.Progress != nil && b.kept%progressEvery == 0 {
		b.opts.Progress(manifest.Progress{Source: b.name, Objects: b.kept})
	}
}
