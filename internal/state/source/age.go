package source

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/graph"
)

// The age of a live state, and how it is determined.
//
// A kind is known as of a time if its state holds everything that the API server had
// stored then. Three things count:
//
//   - A completed list without a resource version: the API server serves it with a
//     quorum read. The kind is known as of the moment in which the list was
//     requested.
//   - An event or a bookmark on a watch: the stream has delivered everything up to
//     that in the API server's watch cache. It does not show that the cache is
//     current: an API server that lost etcd still sends bookmarks from its cache.
//   - A probe that the API server can answer only from its store, a list of one
//     object without a resource version: the server still reaches etcd.
//
// The age of a kind counts from the later of the first two, or from the third if that
// is earlier. Opening a watch does not count: events may still be in flight. Once a
// kind is too old, events and bookmarks do not count until a list is completed: they
// may have been delayed for a long time.

// Kinds is a set of kinds of objects that answers depend on.
type Kinds uint32

// The kinds that the restriction of writes depends on.
const (
	CSIDrivers             Kinds = 1 << kindCSIDriver
	Nodes                  Kinds = 1 << kindNode
	PersistentVolumes      Kinds = 1 << kindPersistentVolume
	PersistentVolumeClaims Kinds = 1 << kindPersistentVolumeClaim
	Pods                   Kinds = 1 << kindPod
	ServiceAccounts        Kinds = 1 << kindServiceAccount
)

// The kinds that the RBAC authorizer reads.
const (
	ClusterRoles        Kinds = 1 << kindClusterRole
	ClusterRoleBindings Kinds = 1 << kindClusterRoleBinding
	Roles               Kinds = 1 << kindRole
	RoleBindings        Kinds = 1 << kindRoleBinding
)

// KindsAbout returns the kinds that relations of nodes to objects of a kind come
// from.
func KindsAbout(about graph.Kind) Kinds {
	return kindsWhere(func(i *kindInfo) bool { return slices.Contains(i.relates, about) })
}

// Resources returns the resources of the kinds.
func (on Kinds) Resources() []schema.GroupResource {
	var all []schema.GroupResource
	for k := range kindCount {
		if on&(1<<k) != 0 {
			all = append(all, k.describe().groupResource())
		}
	}
	return all
}

// AllKinds returns every kind.
func AllKinds() Kinds { return 1<<kindCount - 1 }

// NodeKinds returns the kinds that node authorization needs: all but those that only an inventory
// needs, and NodeScopes and Quarantines.
func NodeKinds() Kinds {
	return kindsWhere(func(i *kindInfo) bool { return !i.inventory && !i.containment })
}

// RBACKinds returns the kinds that the RBAC authorizer reads.
func RBACKinds() Kinds { return kindsWhere(func(i *kindInfo) bool { return i.rbac }) }

// RestrainingKinds are the kinds without which attack paths may be more certain than they are, and never fewer.
func RestrainingKinds() Kinds { return kindsWhere(func(i *kindInfo) bool { return i.restrains }) }

// tooOld returns the kinds among on that may not be used any more.
func (l *Live) tooOld(on Kinds) Kinds {
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
// [LiveOptions].MaxStaleness. The state may then not be used.
func (l *Live) TooOld(on Kinds) error {
	if l.Fresh() {
		return nil
	}
	old := l.tooOld(on)
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

// AgeError is the error of an answer that depends on state that is too old.
type AgeError struct {
	MaxStaleness time.Duration
	// Resources are the resources that are too old.
	Resources []Watched
}

// Error names the resources with their age and the cause.
func (e *AgeError) Error() string {
	parts := make([]string, len(e.Resources))
	for i, w := range e.Resources {
		parts[i] = w.Resource.String() + " (" + w.StaleReason() + ")"
	}
	return fmt.Sprintf("the state of the cluster is older than %v: %s", e.MaxStaleness, strings.Join(parts, ", "))
}

// StaleReason is the age of a resource and the cause, in one line for people.
func (w *Watched) StaleReason() string {
	cause := "the API server has sent nothing since"
	if w.Err != nil {
		cause = w.Err.Error()
	}
	if w.Age == 0 {
		return "being listed again: " + cause
	}
	return fmt.Sprintf("%v old: %s", w.Age.Round(time.Second), cause)
}
