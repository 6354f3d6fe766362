package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

const (
	snapshotGroup = "snapshot.node-authorizer.io"
	// snapshotVersion is what is written. Snapshots of the older version have no inventory.
	snapshotVersion    = "v1alpha2"
	oldSnapshotVersion = "v1alpha1"
	snapshotKind       = "Snapshot"
)

// snapshotHeader is the first document of a snapshot.
type snapshotHeader struct {
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
	// Containment is true when NodeScopes and Quarantines are included, even if there are none. Snapshots
	// of older versions do not have them.
	Containment bool `json:"containment,omitzero"`
	// Objects counts the objects that follow, by kind.
	Objects map[string]int `json:"objects"`
	// Missing is what could not be read.
	Missing []snapshotMissing `json:"missing,omitempty"`
	// Resources that the cluster serves; absent when unknown.
	Resources []APIResource `json:"resources,omitempty"`
}

type snapshotMissing struct {
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// header adds the header of a snapshot.
func (c *content) header(d *manifest.Document) error {
	if err := knownSnapshot(d.APIVersion, d.Kind); err != nil {
		return d.Fail(err)
	}
	var header snapshotHeader
	if err := d.Decode(&header); err != nil {
		return err
	}
	c.headers = append(c.headers, &header)
	return nil
}

// knownSnapshot returns an error for headers of later versions.
func knownSnapshot(apiVersion, kind string) error {
	if kind == snapshotKind && (apiVersion == snapshotGroup+"/"+snapshotVersion || apiVersion == snapshotGroup+"/"+oldSnapshotVersion) {
		return nil
	}
	return fmt.Errorf("apiVersion %s is not known to this version of node-authorizer, which reads %s/%s; use a newer one",
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

func (e *expectation) add(h *snapshotHeader) {
	e.snapshot = true
	for kind, n := range h.Objects {
		e.expected[kind] += n
	}
}

func (e *expectation) count(k kind) { e.found[k]++ }

func (e *expectation) countAll(k kind, n int) { e.found[k] += n }

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
	objects [kindCount][]retainedObject
}

type retainedObject struct {
	namespace, name string
	encoded         []byte
}

func (r *retained) add(o *object) {
	if r == nil {
		return
	}
	r.objects[o.kind] = append(r.objects[o.kind], retainedObject{o.api.GetNamespace(), o.api.GetName(), o.encoded})
}

// reset removes the objects of a kind.
func (r *retained) reset(k kind) {
	if r != nil {
		r.objects[k] = nil
	}
}

// sorted returns the objects of a kind by namespace and name, the last of each
// name.
func (r *retained) sorted(k kind) []retainedObject {
	compare := func(a, b retainedObject) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	}
	objects := slices.Clone(r.objects[k])
	slices.Reverse(objects)
	slices.SortStableFunc(objects, compare)
	return slices.CompactFunc(objects, func(a, b retainedObject) bool { return compare(a, b) == 0 })
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
