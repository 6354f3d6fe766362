package source

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Following is how far a live state is with a resource.
type Following uint8

// The ways in which a resource is followed.
const (
	// Reading: its objects are being read for the first time, or again because
	// a change could not be applied or the state was dropped.
	Reading Following = iota
	// Followed: its objects are known and changes are applied as they come.
	Followed
	// Unreadable: it may not be read; see [State.Missing].
	Unreadable
	// NotServed: the server has no such resource.
	NotServed
)

// String returns "reading", "followed", "unreadable" or "not served".
func (f Following) String() string {
	return [...]string{Reading: "reading", Followed: "followed", Unreadable: "unreadable", NotServed: "not served"}[f]
}

// Watched says how a live state follows one resource.
type Watched struct {
	Resource  schema.GroupResource
	Following Following
	// LastEvent is when the server last sent an object or a bookmark, which API
	// servers send about once a minute; zero if it never did.
	LastEvent time.Time
	// Age is for how long the resource may have changed without the state showing
	// it; 0 if nothing is known of the resource.
	Age time.Duration
	// Stale is true when the age is beyond [LiveOptions].MaxStaleness, and while
	// the resource is read anew because the state was dropped.
	Stale bool
	// Differences counts objects that a list showed otherwise than the state, and
	// of which the watch had not told.
	Differences uint64
	// Errors counts requests and watches that failed and were tried again, and
	// objects that could not be kept whole.
	Errors uint64
	// Err is the last error; nil again when objects come.
	Err error

	kind kind
}

// watchedKind is what a Live knows of how it follows a kind.
type watchedKind struct {
	Watched
	// heard is when the kind was last known from a list or a watch, proven when
	// the server last answered from its store. Both are zero while the state
	// holds nothing of the kind, or nothing that counts.
	heard, proven time.Time
	// listed is when a list was last read to its end.
	listed time.Time
	// dropped is true after a reset until the kind has been read.
	dropped bool
	// position is the highest resource version that the server told.
	position string
	// refused is why the server did not answer what only its store can answer;
	// nil again when it does.
	refused error
}

// Resources lists the resources that are followed, sorted by name.
func (l *Live) Resources() []Watched {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Watched, 0, len(l.watched))
	for k, f := range l.watched {
		all = append(all, l.describe(k, f))
	}
	slices.SortFunc(all, func(a, b Watched) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return all
}

// describe is a kind as it is now. The lock is held.
func (l *Live) describe(k kind, f *watchedKind) Watched {
	w := f.Watched
	w.kind = k
	if !f.heard.IsZero() && f.Following != NotServed {
		now := l.ages.Now()
		w.Age = max(staleness.Since(now, f.heard), staleness.Since(now, f.proven))
	}
	w.Stale = l.old(1<<k) != 0
	if w.Err == nil {
		w.Err = f.refused // though the watch may go on
	}
	return w
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// extend computes until when a kind may be used. The lock is held.
func (l *Live) extend(k kind) {
	f := l.watched[k]
	if l.opts.MaxStaleness <= 0 || f.heard.IsZero() {
		return
	}
	l.ages.Extend(int(k), f.heard, f.proven, l.opts.MaxStaleness)
}

// kindOf is how a kind is followed; nil if what is told is of a time before the
// state was dropped. The lock is held.
func (l *Live) kindOf(e *epoch, k kind) *watchedKind {
	if e != l.epoch {
		return nil
	}
	return l.watched[k]
}

// heard notes that a watch brought something of a kind, and its resource
// version.
func (l *Live) heard(e *epoch, k kind, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.kindOf(e, k)
	if f == nil {
		return
	}
	f.LastEvent = l.ages.Now()
	f.reached(version)
	if !l.ages.Passed(int(k), f.LastEvent) || l.ages.Passed(int(k), f.listed) {
		f.heard, f.Err = later(f.heard, f.LastEvent), nil
		l.extend(k)
	}
}

// answered notes that a page of a list came, which is not all of it.
func (l *Live) answered(e *epoch, k kind, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.kindOf(e, k); f != nil {
		f.LastEvent, f.Err = l.ages.Now(), nil
		f.reached(version)
	}
}

// reached notes the highest resource version.
func (f *watchedKind) reached(version string) {
	if f.position == "" || before(f.position, version) {
		f.position = version
	}
}

// before compares resource versions of one resource; it is false for any that
// are no versions.
func before(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// positionOf is the highest resource version that the server told of a kind.
func (l *Live) positionOf(k kind) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watched[k].position
}

// begun notes that a kind of which nothing is known is about to be listed: what
// pages bring is no older than that.
func (l *Live) begun(e *epoch, k kind, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.kindOf(e, k); f != nil && f.heard.IsZero() && !f.dropped {
		f.heard, f.proven = at, at
		l.extend(k)
	}
}

// read notes that all of a kind is known as it was at a time.
func (l *Live) read(e *epoch, k kind, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.kindOf(e, k); f != nil {
		f.heard, f.proven, f.listed = later(f.heard, at), later(f.proven, at), l.ages.Now()
		f.dropped, f.Err, f.refused = false, nil, nil
		l.extend(k)
	}
}

// proven notes that the server answered from its store a question of a time.
func (l *Live) proven(e *epoch, k kind, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.kindOf(e, k); f != nil && !f.proven.IsZero() {
		f.proven, f.refused = later(f.proven, at), nil
		l.extend(k)
	}
}

// refused notes why the server did not answer what only its store can answer.
func (l *Live) refused(k kind, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched[k].refused = err
}

// heardAt is when a kind was last known from a list or a watch.
func (l *Live) heardAt(k kind) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watched[k].heard
}

// differ counts differences that a list showed.
func (l *Live) differ(k kind, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched[k].Differences += uint64(n)
}

// following notes how far a kind is.
func (l *Live) following(e *epoch, k kind, f Following) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if watched := l.kindOf(e, k); watched != nil {
		watched.Following = f
	}
}

// isFollowed reports whether all of a kind is known and changes are applied.
func (l *Live) isFollowed(k kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watched[k].Following == Followed
}
