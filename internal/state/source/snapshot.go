package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/state/snapshot"
)

const (
	snapshotGroup   = "snapshot.node-authorizer.io"
	snapshotVersion = "v1alpha1"
	snapshotKind    = "Snapshot"
)

// SnapshotHeader is the first document of a snapshot.
type SnapshotHeader struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// KubernetesVersion of the server, "v1.36.3"; empty when unknown.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Cluster is true when all objects are from a cluster, false when some are from
	// manifests.
	Cluster bool `json:"cluster"`
	// Complete is true when manifests were added to the state of a cluster: Cluster
	// is false then, but every object of the cluster is included.
	Complete bool `json:"complete,omitzero"`
	// RBACReadable is true when roles and bindings could be read, even if there
	// are none.
	RBACReadable bool `json:"rbacReadable"`
	// Objects counts the objects that follow, by kind.
	Objects map[string]int `json:"objects"`
	// Missing is the state that could not be read.
	Missing []snapshotMissing `json:"missing,omitempty"`
	// Resources that the cluster serves; absent when unknown.
	Resources []APIResource `json:"resources,omitempty"`
}

type snapshotMissing struct {
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// HeaderOf reads the header of a snapshot, which must be of the version that is known.
func HeaderOf(d *manifest.Document) (*SnapshotHeader, error) {
	if err := checkVersion(d.Kind, d.APIVersion); err != nil {
		return nil, d.Fail(err)
	}
	header := new(SnapshotHeader)
	return header, d.Decode(header)
}

// checkVersion returns an error for headers of other versions.
func checkVersion(kind, apiVersion string) error {
	if kind == snapshotKind && apiVersion == snapshotGroup+"/"+snapshotVersion {
		return nil
	}
	return fmt.Errorf("apiVersion %s is not known to this version of node-authorizer, which reads %s/%s; take the snapshot again",
		apiVersion, snapshotGroup, snapshotVersion)
}

// expectation compares the object counts in the headers of a file with its objects.
type expectation struct {
	file     string
	snapshot bool
	expected map[string]int
	found    [kindCount]int
}

func newExpectation(file string) *expectation {
	return &expectation{file: file, expected: map[string]int{}}
}

func (e *expectation) add(h *SnapshotHeader) {
	e.snapshot = true
	for kind, n := range h.Objects {
		e.expected[kind] += n
	}
}

// check returns an error if the file holds fewer objects than its headers state.
func (e *expectation) check() error {
	if !e.snapshot {
		return nil
	}
	for _, kind := range slices.Sorted(maps.Keys(e.expected)) {
		found := 0
		for k := range kindCount {
			if k.String() == kind {
				found = e.found[k]
			}
		}
		if found < e.expected[kind] {
			return &manifest.Error{File: e.file, Err: fmt.Errorf("snapshot is incomplete: it should hold %d objects of kind "+
				"%s, but holds %d; take it again",
				e.expected[kind], kind, found)}
		}
	}
	return nil
}

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
	header, err := s.SnapshotHeader(&objects)
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

// SnapshotHeader returns the text of the header.
func (s *State) SnapshotHeader(objects *[kindCount][]snapshot.Object) ([]byte, error) {
	header := SnapshotHeader{
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
