package source

import (
	"fmt"
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

const (
	snapshotGroup   = "snapshot.node-authorizer.io"
	snapshotVersion = "v1alpha1"
	snapshotKind    = "Snapshot"
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

// header adds the header of a snapshot.
func (c *content) header(d *manifest.Document) error {
	if d.Kind != snapshotKind || d.APIVersion != snapshotGroup+"/"+snapshotVersion {
		return d.Fail(unknownSnapshot(d.APIVersion))
	}
	var header snapshotHeader
	if err := d.Decode(&header); err != nil {
		return err
	}
	c.headers = append(c.headers, &header)
	return nil
}

// unknownSnapshot is the error for headers of other versions.
func unknownSnapshot(apiVersion string) error {
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

func (e *expectation) add(h *snapshotHeader) {
	e.snapshot = true
	for kind, n := range h.Objects {
		e.expected[kind] += n
	}
}

func (e *expectation) count(k kind) { e.found[k]++ }

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
