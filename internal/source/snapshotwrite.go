package source

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/internal/snapshot"
)

// SnapshotForm is a form of snapshots. [LoadFiles] reads all of them.
type SnapshotForm uint8

const (
	// BinarySnapshot is the form of package snapshot, which is small and fast to read.
	BinarySnapshot SnapshotForm = iota
	// JSONSnapshot has a header and each object on a line of JSON, compressed with gzip, because every
	// system has tools to read it.
	JSONSnapshot
)

// WriteSnapshot writes the state as one file that [LoadFiles] reads. The state must have been read
// with the option to retain objects. The same state gives the same bytes.
func WriteSnapshot(w io.Writer, s *State, form SnapshotForm) error {
	if s.retained == nil {
		return errors.New("write snapshot: the state was read without retaining objects")
	}
	objects := s.snapshotObjects()
	header, err := s.snapshotHeader(objects)
	if err == nil && form == JSONSnapshot {
		err = writeJSON(w, header, objects)
	} else if err == nil {
		err = snapshot.Write(w, header, objects.sections())
	}
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// snapshotObjects are the objects of a snapshot, in its order.
type snapshotObjects [kindCount][]retainedObject

func (s *State) snapshotObjects() *snapshotObjects {
	var objects snapshotObjects
	for k := range kindCount {
		if !s.facts.oldSnapshot || !k.describe().inventory {
			objects[k] = s.retained.sorted(k)
		}
	}
	return &objects
}

// sections are the kinds that have objects.
func (o *snapshotObjects) sections() []snapshot.Objects {
	var sections []snapshot.Objects
	for k, all := range o {
		if len(all) > 0 {
			sections = append(sections, snapshot.Objects{Kind: kind(k).String(), All: texts(all)})
		}
	}
	return sections
}

func texts(objects []retainedObject) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range objects {
			if !yield(objects[i].encoded) {
				return
			}
		}
	}
}

// snapshotHeader returns the text of the header.
func (s *State) snapshotHeader(objects *snapshotObjects) ([]byte, error) {
	version := snapshotVersion
	if s.facts.oldSnapshot {
		version = oldSnapshotVersion
	}
	header := snapshotHeader{
		APIVersion:        snapshotGroup + "/" + version,
		Kind:              snapshotKind,
		KubernetesVersion: s.ServerVersion,
		Cluster:           s.fromCluster,
		Complete:          s.Complete() && !s.fromCluster,
		RBACReadable:      s.RBACLoaded(),
		Containment:       true,
		Objects:           map[string]int{},
		Resources:         s.Resources,
	}
	for _, m := range s.Missing() {
		if s.facts.oldSnapshot && m.forInventory {
			continue // the version says so
		}
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

// writeJSON writes the header and each object on a line of its own.
func writeJSON(w io.Writer, header []byte, objects *snapshotObjects) error {
	compressed := gzip.NewWriter(w)
	if _, err := compressed.Write(append(header, '\n')); err != nil {
		return err
	}
	for _, all := range objects {
		for _, o := range all {
			if _, err := compressed.Write(append(o.encoded, '\n')); err != nil {
				return err
			}
		}
	}
	return compressed.Close()
}
