package source

import (
	"context"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/state/snapshot"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// partialFile is a snapshot of which a State reads the parts that are asked for.
type partialFile struct {
	*snapshot.File
	ctx   context.Context // ends all reading
	name  string
	state *State
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

// loadParts reads the header of a snapshot and the objects of kinds that are not read in parts. It returns
// false if the file should be read as a whole: if it has no index, or so few pods that parts do not pay off.
func (l *loader) loadParts(ctx context.Context, file manifest.File, expected *expectation) (opened bool, err error) {
	f, err := openSnapshot(file)
	if f == nil {
		return false, err
	}
	if !l.inParts && f.Count(kindPod.String()) <= l.opts.PartsAbove {
		return false, nil
	}
	l.opts.Inventory, l.state.Inventory = false, nil
	p := newParts(ctx)
	p.file = &partialFile{File: f, ctx: ctx, name: file.Name, state: l.state}
	if err := l.loadWholeKinds(p, expected); err != nil {
		return false, &manifest.Error{File: file.Name, Err: err}
	}
	l.state.parts = p
	return true, expected.check()
}

// openSnapshot opens a file; nil if it has no index. It stays open for as long as it is used.
func openSnapshot(file manifest.File) (*snapshot.File, error) {
	if file.Size == 0 {
		return nil, nil // not a regular file
	}
	stored, err := os.Open(file.Path)
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	f, err := snapshot.Open(stored, file.Size)
	if f == nil {
		_ = stored.Close() // nothing was written
	}
	if err != nil {
		return nil, &manifest.Error{File: file.Name, Err: err}
	}
	return f, nil
}

// loadWholeKinds applies the header, and the objects of kinds that are not read in parts.
func (l *loader) loadWholeKinds(p *parts, expected *expectation) error {
	var header SnapshotHeader
	if err := json.Unmarshal(p.file.Header, &header); err != nil {
		return fmt.Errorf("header of the snapshot: %w", strictjson.Explain(err))
	}
	if err := checkVersion(header.Kind, header.APIVersion); err != nil {
		return err
	}
	expected.add(&header)
	if err := l.applyHeader(p.file.name, &header); err != nil {
		return err
	}
	for k := range kindCount {
		if readInParts(k) {
			expected.found[k] += p.file.Count(k.String())
			continue
		}
		p.markAllRead(k)
		if k.describe().inventory {
			expected.found[k] += p.file.Count(k.String())
			continue
		}
		var c content
		if err := p.file.objects(k, Part{}, func(o apiObject) error {
			c.objects = append(c.objects, object{kind: k, api: o})
			return nil
		}); err != nil {
			return err
		}
		if err := l.apply(p.file.name, &c, expected); err != nil {
			return err
		}
	}
	return nil
}

// objects calls a function with the objects of a kind in a part.
func (f *partialFile) objects(k kind, part Part, visit func(apiObject) error) error {
	want := snapshot.Selection{Kind: k.String(), Node: part.Node, Namespace: part.Namespace, Name: part.Name}
	if k == kindNode {
		want.Node = part.Name
	}
	return f.Read(f.ctx, want, func(text []byte) error {
		o, err := decodeObject(k, false, metav1.NamespaceDefault, func(into any) error { return json.Unmarshal(text, into) })
		if err != nil {
			return strictjson.Explain(err)
		}
		node, _ := nodeOf(o)
		if want.Node != "" && want.Node != node || want.Namespace != "" && want.Namespace != o.GetNamespace() ||
			want.Name != "" && want.Name != o.GetName() {
			return nil
		}
		return visit(o)
	})
}

// fetch reads a part of a kind into the state.
func (f *partialFile) fetch(k kind, part Part) error {
	err := f.objects(k, part, func(o apiObject) error {
		if f.state.holds(k, o.GetNamespace(), o.GetName()) {
			return nil
		}
		_, err := f.state.set(k, o, 0)
		return err
	})
	if err != nil {
		return &manifest.Error{File: f.name, Err: err}
	}
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
func (s *State) NodesOfFile() []string { return s.parts.file.Nodes() }
