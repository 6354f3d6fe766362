package source

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// Following is the sync state of a resource.
type Following uint8

// The sync states of a resource.
const (
	// Reading: its objects are being listed for the first time, or again because a
	// change could not be applied or the state was dropped.
	Reading Following = iota
	// Followed: its objects are known, and watch events are applied.
	Followed
	// Unreadable: the credentials may not read it; see [State.Missing].
	Unreadable
	// NotServed: the server does not serve the resource.
	NotServed
)

// String returns "reading", "followed", "unreadable" or "not served".
func (f Following) String() string {
	return [...]string{Reading: "reading", Followed: "followed", Unreadable: "unreadable", NotServed: "not served"}[f]
}

// Watched is the status of one resource in a live state.
type Watched struct {
	Resource  schema.GroupResource
	Following Following
	// LastEvent is when the server last sent an object or a bookmark; zero if it
	// never did. API servers send a bookmark about once a minute.
	LastEvent time.Time
	// Age is how old the state of the resource may be; 0 if nothing is known of the
	// resource.
	Age time.Duration
	// Stale is true when the age exceeds [LiveOptions].MaxStaleness, and while the
	// resource is listed again because the state was dropped.
	Stale bool
	// Differences counts objects in which a list differed from the state without a
	// watch event.
	Differences uint64
	// Errors counts requests and watches that failed and were retried, and objects
	// that could not be kept whole.
	Errors uint64
	// Err is the last error; nil again after an object or bookmark arrives.
	Err error

	kind kind
}

// kindStatus is the status of a kind in a Live.
type kindStatus struct {
	Watched
	// observed is the time as of which lists and watch events show the kind.
	// confirmed is when the server last answered from its store. Both are zero while
	// the state of the kind may not be used.
	observed, confirmed time.Time
	// listed is when the last list was completed, and requested is when it was requested.
	listed, requested time.Time
	// dropped is true after a reset until the kind has been listed.
	dropped bool
	// resourceVersion is the highest one that the server sent.
	resourceVersion string
	// history has known facts about objects that the state does not have.
	history staleness.History
	// checkErr is the error of the last probe or comparison; nil after one that
	// succeeded.
	checkErr error
}

// Resources lists the resources that are followed, sorted by name.
func (l *Live) Resources() []Watched {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Watched, 0, len(l.statuses))
	for k, f := range l.statuses {
		all = append(all, l.describe(k, f))
	}
	slices.SortFunc(all, func(a, b Watched) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return all
}

// describe returns the current status of a kind. The lock is held.
func (l *Live) describe(k kind, f *kindStatus) Watched {
	w := f.Watched
	w.kind = k
	if !f.observed.IsZero() && f.Following != NotServed {
		now := l.ages.Now()
		w.Age = max(staleness.Since(now, f.observed), staleness.Since(now, l.confirmedUntil(f)))
	}
	w.Stale = l.tooOld(1<<k) != 0
	if w.Err == nil {
		w.Err = f.checkErr // though the watch may still run
	}
	return w
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// extendDeadline computes until when a kind may be used. The lock is held.
func (l *Live) extendDeadline(k kind) {
	f := l.statuses[k]
	if l.opts.MaxStaleness <= 0 || f.observed.IsZero() {
		return
	}
	l.ages.Extend(int(k), f.observed, l.confirmedUntil(f), l.opts.MaxStaleness)
}

// confirmedUntil is when the store last confirmed a kind: with an answer, or with a whole list, which counts for
// MaxStaleness more. What a watch delivers may be of another history than the rest of the state, so it does not count
// alone. The lock is held.
func (l *Live) confirmedUntil(f *kindStatus) time.Time {
	if l.opts.MaxStaleness <= 0 {
		return f.confirmed
	}
	return staleness.Earlier(f.confirmed, f.requested.Add(l.opts.MaxStaleness))
}

// change changes the status of a kind, unless the epoch has ended: late results are ignored.
func (l *Live) change(e *epoch, k kind, change func(*kindStatus)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e == l.epoch {
		change(l.statuses[k])
	}
}

func (l *Live) status(k kind) kindStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.statuses[k]
}

// recordEvent records a watch event or bookmark with its resource version.
func (l *Live) recordEvent(e *epoch, k kind, version string) {
	l.change(e, k, func(f *kindStatus) {
		f.LastEvent = l.ages.Now()
		f.advanceResourceVersion(version)
		if !l.ages.Passed(int(k), f.LastEvent) || l.ages.Passed(int(k), f.listed) {
			f.observed, f.Err = later(f.observed, f.LastEvent), nil
			l.extendDeadline(k)
		}
	})
}

// recordPage records one page of a list, or one initial event of a watch.
func (l *Live) recordPage(e *epoch, k kind, version string) {
	l.change(e, k, func(f *kindStatus) {
		f.LastEvent, f.Err = l.ages.Now(), nil
		f.advanceResourceVersion(version)
	})
}

// advanceResourceVersion keeps the highest resource version.
func (f *kindStatus) advanceResourceVersion(version string) {
	if f.resourceVersion == "" || staleness.Older(f.resourceVersion, version) {
		f.resourceVersion = version
	}
}

// listStarted records that a kind of which nothing is known is about to be listed:
// the pages of the list are no older than that.
func (l *Live) listStarted(e *epoch, k kind, at time.Time) {
	l.change(e, k, func(f *kindStatus) {
		if f.observed.IsZero() && !f.dropped {
			f.observed, f.confirmed, f.requested = at, at, at
			l.extendDeadline(k)
		}
	})
}

// listCompleted records that a list that was requested at a time has been read to its
// end.
func (l *Live) listCompleted(e *epoch, k kind, at time.Time) {
	l.change(e, k, func(f *kindStatus) {
		f.observed, f.confirmed, f.listed, f.requested = later(f.observed, at), later(f.confirmed, at), l.ages.Now(), at
		f.dropped, f.Err, f.checkErr = false, nil, nil
		l.extendDeadline(k)
	})
}

// newSample returns the sample of a list of a kind.
func (l *Live) newSample(k kind) *staleness.Sample {
	l.mu.Lock()
	defer l.mu.Unlock()
	return staleness.NewSample(&l.statuses[k].history)
}

// recordDeleted records that a watch deleted an object.
func (l *Live) recordDeleted(k kind, m metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[k].history.Deleted(m)
}

// endHistory records that the store does not have the history up to a resource version. It returns whether the kind has
// been listed, so that the state is of that history.
func (l *Live) endHistory(k kind, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[k].history.End(version)
	return !l.statuses[k].listed.IsZero()
}

// storeConfirmed records that the server answered a probe of a time from its store.
func (l *Live) storeConfirmed(e *epoch, k kind, at time.Time) {
	l.change(e, k, func(f *kindStatus) {
		if !f.confirmed.IsZero() {
			f.confirmed, f.checkErr = later(f.confirmed, at), nil
			l.extendDeadline(k)
		}
	})
}

// setFollowing sets the sync state of a kind.
func (l *Live) setFollowing(e *epoch, k kind, following Following) {
	l.change(e, k, func(f *kindStatus) { f.Following = following })
}
