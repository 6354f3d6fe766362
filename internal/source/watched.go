package source

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Following is how far a live state is with a resource.
type Following uint8

// The ways in which a resource is followed.
const (
	// Reading: its objects are being read for the first time, or again because
	// a change could not be applied.
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
	// Errors counts requests and watches that failed and were tried again, and
	// objects that could not be kept whole.
	Errors uint64
	// Err is the last error; nil again when objects come.
	Err error
}

// Resources lists the resources that are followed, sorted by name.
func (l *Live) Resources() []Watched {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Watched, 0, len(l.watched))
	for _, w := range l.watched {
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Watched) int { return strings.Compare(a.Resource.String(), b.Resource.String()) })
	return all
}

// heard notes that the server sent something of a kind.
func (l *Live) heard(k kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched[k].LastEvent, l.watched[k].Err = time.Now(), nil
}

// following notes how far a kind is.
func (l *Live) following(k kind, f Following) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched[k].Following = f
}
