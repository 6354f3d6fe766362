package source

import (
	"context"
	"slices"
	"sync"

	"github.com/node-authorizer/node-authorizer/internal/manifest"
	"github.com/node-authorizer/node-authorizer/internal/snapshot"
)

// partialFile is a snapshot of which a State reads the parts that are asked for.
type partialFile struct {
	ctx    context.Context // ends all reading
	name   string
	state  *State
	counts [kindCount]int

	mu       sync.Mutex
	sections [kindCount]*snapshot.Section
	rows     [kindCount]*rowDecoder
}

// readInParts reports whether objects of a kind are read when they are asked for. Those of other kinds
// are few, or count as a whole.
func readInParts(k kind) bool {
	switch k {
	case kindPod, kindPersistentVolume, kindPersistentVolumeClaim, kindVolumeAttachment, kindNode, kindServiceAccount,
		kindResourceSlice, kindPodCertificateRequest:
		return true
	}
	return false
}

// isLarge reports whether a file has so many pods that no inventory is made of it.
func (b *binaryLoader) isLarge(f *snapshot.File) bool {
	for _, s := range f.Sections {
		if s.Kind == kindPod.String() && s.Objects > b.opts.PartsAbove {
			b.opts.Inventory, b.state.Inventory = false, nil
			return true
		}
	}
	return false
}

// open reads the header of a file, and the objects of kinds that are not read in parts.
func (b *binaryLoader) open(f *snapshot.File) error {
	if err := b.header(f); err != nil {
		return err
	}
	file := &partialFile{ctx: b.ctx, name: b.name, state: b.state}
	for _, s := range f.Sections {
		k, err := kindOfSection(s)
		if err != nil {
			return &manifest.Error{File: b.name, Err: err}
		}
		if readInParts(k) {
			b.expected.countAll(k, s.Objects)
			file.sections[k], file.rows[k] = s, newRowDecoder(k, false)
		} else if err := b.section(s); err != nil {
			return err
		}
		file.counts[k] = s.Objects
		b.before += s.Objects
	}
	p := newParts(b.ctx)
	p.file = file
	for k, s := range file.sections {
		if s == nil {
			p.markAllRead(kind(k))
		}
	}
	b.state.parts = p
	return nil
}

// ReadAll reads everything of a partial State of a snapshot, which is not partial then.
func (s *State) ReadAll() error {
	if !s.OfFile() {
		return nil
	}
	if err := s.Read(Part{Kinds: AllKinds()}); err != nil {
		return err
	}
	s.parts = nil
	return nil
}

// NodesOfFile returns the names of the Node objects, and of the nodes that other objects name, of a
// partial State of a snapshot. The names may repeat.
func (s *State) NodesOfFile() ([]string, error) {
	f := s.parts.file
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for k, section := range f.sections {
		if section == nil {
			continue
		}
		column, last := snapshot.Node, ""
		if kind(k) == kindNode {
			column = snapshot.Name
		}
		if err := section.Scan(snapshot.Selection{}, func(r *snapshot.Row) error {
			if name := r.Value(column); name != last {
				names, last = append(names, name), name
			}
			return nil
		}); err != nil {
			return nil, &manifest.Error{File: f.name, Err: err}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" }), nil
}

// fetch reads a part of a kind into the state.
func (f *partialFile) fetch(k kind, part Part) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := &rowReader{
		ctx: f.ctx, rowDecoder: f.rows[k], state: f.state, skip: true, each: func() {},
		alone: func(o apiObject, _ *snapshot.Row) error {
			_, err := f.state.set(k, o, 0)
			return err
		},
	}
	if err := rows.read(f.sections[k], snapshot.Selection{Namespace: part.Namespace, Name: part.Name, Node: part.Node}); err != nil {
		return &manifest.Error{File: f.name, Err: err}
	}
	return nil
}
