package source

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
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

// ages say until when each kind may be used. They are read without a lock and
// written under that of the Live they are of.
//
// Two clocks count, and the one by which a kind is older: the monotonic one, which
// nobody sets, stands still while the machine is suspended, and the wall clock may
// be set back.
type ages struct {
	clock     func() time.Time
	monotonic limits
	wall      limits
}

// limits are until when kinds may be used by one clock, since begin.
type limits struct {
	begin time.Time
	until [kindCount]atomic.Int64
	// first is the least of until.
	first atomic.Int64
}

// forever is for kinds of which the state holds nothing.
const forever = math.MaxInt64

func newAges(clock func() time.Time) *ages {
	a := &ages{clock: clock}
	now := clock()
	a.monotonic.begin, a.wall.begin = now, wall(now)
	for k := range kindCount {
		a.forget(k)
	}
	return a
}

// wall is a time by the wall clock alone.
func wall(t time.Time) time.Time { return t.Round(0) }

// since is how long ago a time was, by the clock by which it is longer.
func since(now, t time.Time) time.Duration { return max(now.Sub(t), wall(now).Sub(wall(t))) }

// forget lets a kind of which the state holds nothing be used.
func (a *ages) forget(k kind) {
	a.monotonic.set(k, forever)
	a.wall.set(k, forever)
}

// end says that a kind may not be used any more.
func (a *ages) end(k kind) {
	a.monotonic.set(k, 0)
	a.wall.set(k, 0)
}

// extend lets a kind be used for a time after the earlier of two.
func (a *ages) extend(k kind, heard, proven time.Time, limit time.Duration) {
	a.monotonic.set(k, int64(earlier(heard, proven).Add(limit).Sub(a.monotonic.begin)))
	a.wall.set(k, int64(earlier(wall(heard), wall(proven)).Add(limit).Sub(a.wall.begin)))
}

func (l *limits) set(k kind, until int64) {
	l.until[k].Store(until)
	first := int64(forever)
	for k := range l.until {
		first = min(first, l.until[k].Load())
	}
	l.first.Store(first)
}

// fresh reports whether all kinds may be used.
func (a *ages) fresh() bool {
	now := a.clock()
	return int64(now.Sub(a.monotonic.begin)) < a.monotonic.first.Load() && int64(wall(now).Sub(a.wall.begin)) < a.wall.first.Load()
}

// passed reports whether a kind may not be used any more at a time.
func (a *ages) passed(k kind, at time.Time) bool {
	return int64(at.Sub(a.monotonic.begin)) >= a.monotonic.until[k].Load() || int64(wall(at).Sub(a.wall.begin)) >= a.wall.until[k].Load()
}

// old are those of the kinds that may not be used any more.
func (a *ages) old(on Kinds) Kinds {
	now := a.clock()
	var old Kinds
	for k := range kindCount {
		if on&(1<<k) != 0 && a.passed(k, now) {
			old |= 1 << k
		}
	}
	return old
}

// Fresh reports whether no kind is older than [LiveOptions].MaxStaleness. It
// takes no lock.
func (l *Live) Fresh() bool { return l.ages.fresh() }

// TooOld returns an error, an [AgeError], if one of the kinds is older than
// [LiveOptions].MaxStaleness. What the state says is then not known to be so any
// more.
func (l *Live) TooOld(on Kinds) error {
	if l.Fresh() {
		return nil
	}
	old := l.ages.old(on)
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
