package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/internal/state/snapshot"
)

// retained holds the objects of a state as they are written to a snapshot.
type retained struct {
	objects [kindCount][]snapshot.Object
}

func (r *retained) add(o *object) {
	if r == nil {
		return
	}
	node, _ := nodeOf(o.api)
	r.objects[o.kind] = append(r.objects[o.kind], snapshot.Object{
		Kind: o.kind.String(), Node: node, Namespace: o.api.GetNamespace(), Name: o.api.GetName(), Text: o.encoded,
	})
}

// reset removes the objects of a kind.
func (r *retained) reset(k kind) {
	if r != nil {
		r.objects[k] = nil
	}
}

// sorted returns the objects of a kind, the last of each name: by node, namespace and name.
func (r *retained) sorted(k kind) []snapshot.Object {
	compare := func(a, b snapshot.Object) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	}
	objects := slices.Clone(r.objects[k])
	slices.Reverse(objects)
	slices.SortStableFunc(objects, compare)
	objects = slices.CompactFunc(objects, func(a, b snapshot.Object) bool { return compare(a, b) == 0 })
	slices.SortStableFunc(objects, func(a, b snapshot.Object) int { return strings.Compare(a.Node, b.Node) })
	return objects
}

// encode encodes a trimmed object for a snapshot.
func encode(k kind, o apiObject) ([]byte, error) {
	o.GetObjectKind().SetGroupVersionKind(k.describe().groupVersionKind())
	text, err := json.Marshal(o, compact())
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", k, displayName(o), err)
	}
	return text, nil
}

// WriteSnapshot writes the state as one file that [LoadFiles] reads. The state must have been read
// with the option to retain objects. The same state gives the same bytes.
func WriteSnapshot(w io.Writer, s *State) error {
	if s.retained == nil {
		return errors.New("write snapshot: the state was read without retaining objects")
	}
	var objects [kindCount][]snapshot.Object
	for k := range kindCount {
		objects[k] = s.retained.sorted(k)
	}
	header, err := s.snapshotHeader(&objects)
	if err == nil {
		err = snapshot.Write(w, header, allOf(&objects))
	}
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

func allOf(objects *[kindCount][]snapshot.Object) iter.Seq[snapshot.Object] {
	return func(yield func(snapshot.Object) bool) {
		for _, all := range objects {
			for _, o := range all {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// snapshotHeader returns the text of the header.
func (s *State) snapshotHeader(objects *[kindCount][]snapshot.Object) ([]byte, error) {
	header := snapshotHeader{
		APIVersion:        snapshotGroup + "/" + snapshotVersion,
		Kind:              snapshotKind,
		KubernetesVersion: s.ServerVersion,
		Cluster:           s.fromCluster,
		Complete:          s.Complete() && !s.fromCluster,
		RBACReadable:      s.RBACLoaded(),
		Objects:           map[string]int{},
		Resources:         s.Resources,
	}
	for _, m := range s.Missing() {
		header.Missing = append(header.Missing, snapshotMissing{m.Resource.Group, m.Resource.Resource, m.Reason})
	}
	for k, all := range objects {
		if len(all) > 0 {
			header.Objects[kind(k).String()] = len(all)
		}
	}
	text, err := json.Marshal(&header, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode header: %w", err)
	}
	return text, nil
}
