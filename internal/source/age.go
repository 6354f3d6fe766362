package source

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/graph"
)

// How old a live state is, and what proves it.
//
// A kind is known as of a time if its state holds all that the API server had
// stored then. Three things say so:
//
//   - A list that was read to its end, without a resource version: the API
//     server answers it from a quorum of its store. The kind is known as of the
//     moment in which the list was asked for.
//   - An event or a bookmark on a watch: the stream flows and brings all that the
//     API server's watch cache has seen. It says nothing about the cache: an API
//     server that lost its store still sends bookmarks from its cache.
//   - A question that the API server can answer from its store alone, a list of
//     one object without a resource version: the server still has its store.
//
// So a kind is as old as the later of the first two, and as the third if that is
// older. That a watch was opened proves nothing: what happened meanwhile may
// still be on its way. Once a kind has become too old, events and bookmarks do
// not count until a list was read to its end: what comes may have been on its way
// for long.

// Kinds is a set of kinds of objects that answers depend on.
type Kinds uint16

// The kinds that restrictions of writes depend on.
const (
	CSIDrivers             Kinds = 1 << kindCSIDriver
	Nodes                  Kinds = 1 << kindNode
	PersistentVolumes      Kinds = 1 << kindPersistentVolume
	PersistentVolumeClaims Kinds = 1 << kindPersistentVolumeClaim
	Pods                   Kinds = 1 << kindPod
	ServiceAccounts        Kinds = 1 << kindServiceAccount
)

// KindsAbout are the kinds that relations of nodes to objects of a kind come
// from.
func KindsAbout(about graph.Kind) Kinds {
	var on Kinds
	for k := range kindCount {
		if slices.Contains(k.describe().relates, about) {
			on |= 1 << k
		}
	}
	return on
}

// Resources are those of the kinds' objects.
func (on Kinds) Resources() []schema.GroupResource {
	var all []schema.GroupResource
	for k := range kindCount {
		if on&(1<<k) != 0 {
			all = append(all, k.describe().groupResource())
		}
	}
	return all
}

// RBACKinds are the kinds that answers of the RBAC authorizer come from.
func RBACKinds() Kinds {
	var on Kinds
	for k := range kindCount {
		if k.describe().rbac {
			on |= 1 << k
		}
	}
	return on
}

// old are those of the kinds that may not be used any more.
func (l *Live) old(on Kinds) Kinds {
	now := l.ages.Now()
	var old Kinds
	for k := range kindCount {
		if on&(1<<k) != 0 && l.ages.Passed(int(k), now) {
			old |= 1 << k
		}
	}
	return old
}

// Fresh reports whether no kind is older than [LiveOptions].MaxStaleness. It
// takes no lock.
func (l *Live) Fresh() bool { return l.ages.Fresh() }

// TooOld returns an error, an [AgeError], if one of the kinds is older than
// [LiveOptions].MaxStaleness. What the state says is then not known to be so any
// more.
func (l *Live) TooOld(on Kinds) error {
	if l.Fresh() {
		return nil
	}
	old := l.old(on)
	if old == 0 {
		return nil
	}
	e := &AgeError{MaxStaleness: l.opts.MaxStaleness}
	for _, w := range l.Resources() {
		if old&(1<<w.kind) != 0 {
			e.Resources = append(e.Resources, w)
		}
	}
	return e
}

// AgeError says that an answer depends on state that is too old.
type AgeError struct {
	MaxStaleness time.Duration
	// Resources are those that are too old.
	Resources []Watched
}

// Error names the resources with their age and what keeps them from being read.
func (e *AgeError) Error() string {
	parts := make([]string, len(e.Resources))
	for i, w := range e.Resources {
		parts[i] = w.Resource.String() + " (" + w.OldBecause() + ")"
	}
	return fmt.Sprintf("the state of the cluster is older than %v: %s", e.MaxStaleness, strings.Join(parts, ", "))
}

// OldBecause is the age of what is known of a resource, and what keeps it from
// being read, in one line for people.
func (w *Watched) OldBecause() string {
	cause := "the API server has sent nothing since"
	if w.Err != nil {
		cause = w.Err.Error()
	}
	if w.Age == 0 {
		return "being read anew: " + cause
	}
	return fmt.Sprintf("%v old: %s", w.Age.Round(time.Second), cause)
}
