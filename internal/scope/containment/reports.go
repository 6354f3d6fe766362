package containment

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/objectevents"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Observer is notified of changes. Calls about the same resource are sequential.
type Observer interface {
	// ContainmentChanged reports that outcomes of objects have changed.
	ContainmentChanged(Change)
	// ContainmentUnreachable reports once that a resource cannot be read or followed, and with nil
	// that it can be again.
	ContainmentUnreachable(resource string, err error)
	// ContainmentWriteFailed reports that a status or an Event could not be written.
	ContainmentWriteFailed(err error)
	// ContainmentUnrecorded reports once that the number of quarantined nodes cannot be recorded, so that a lower
	// limit ends quarantines, and with nil that it can be again.
	ContainmentUnrecorded(err error)
}

// Change is a change of a resource.
type Change struct {
	// Resource is its name: "nodescopes".
	Resource string
	// Objects are the numbers of all objects by the code of their outcome.
	Objects map[verdict.Code]int
	// Changed are the objects that are new or have another result, Gone the names of deleted
	// objects. Both have at most [MaxReported] entries; More is the number of the others.
	Changed []Object
	Gone    []string
	More    int
}

// Object is an object with its outcome.
type Object struct {
	Name       string
	Generation int64
	Code       verdict.Code
	Message    string
	// Target is the node or credential that a quarantine cuts off, and Reason its reason; both may be empty.
	Target, Reason string
}

// MaxReported is the maximum number of objects that are reported in one change.
const MaxReported = 50

// reports compare the outcomes of objects with the reported ones.
type reports struct {
	resource string
	now      func() time.Time
	observer Observer
	known    map[string]outcome
	began    bool

	mu sync.Mutex
	by map[verdict.Code]int
	// versions are the resource versions of the objects that exist. changes counts how often an object
	// appeared, disappeared or got another spec; last is the time of the last change.
	versions map[string]version
	changes  uint64
	last     time.Time
}

func newReports(resource string, now func() time.Time, observer Observer) *reports {
	return &reports{resource: resource, now: now, observer: observer, versions: map[string]version{}}
}

// changed reports what has changed, and returns the outcomes of objects that are broken since then.
func (r *reports) changed(outcomes []outcome) (broken []outcome) {
	change := Change{Resource: r.resource, Objects: map[verdict.Code]int{}}
	known := make(map[string]outcome, len(outcomes))
	for _, o := range outcomes {
		change.Objects[o.Code]++
		known[o.Name] = o
		if was, ok := r.known[o.Name]; ok && o.same(&was) {
			continue
		}
		if o.broken() {
			broken = append(broken, o)
		}
		if len(change.Changed) == MaxReported {
			change.More++
			continue
		}
		change.Changed = append(change.Changed, Object{o.Name, o.Generation, o.Code, o.Message, o.target, clipped(o.reason)})
	}
	for name := range r.known {
		if _, ok := known[name]; ok {
			continue
		}
		if len(change.Gone) == MaxReported {
			change.More++
			continue
		}
		change.Gone = append(change.Gone, name)
	}
	first := !r.began
	r.known, r.began = known, true
	r.mu.Lock()
	r.by = change.Objects
	r.mu.Unlock()
	if first || len(change.Changed) > 0 || len(change.Gone) > 0 {
		r.observer.ContainmentChanged(change)
	}
	return broken
}

// count counts a change of an object, unless only its status has changed.
func (r *reports) count(o *object, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !deleted && r.versions[o.Name] == o.version() {
		return
	}
	r.changes++
	r.last = r.now()
	r.versions[o.Name] = o.version()
	if deleted {
		delete(r.versions, o.Name)
	}
}

// unobserved is the default Observer.
type unobserved struct{}

func (unobserved) ContainmentChanged(Change)            {}
func (unobserved) ContainmentUnreachable(string, error) {}
func (unobserved) ContainmentWriteFailed(error)         {}
func (unobserved) ContainmentUnrecorded(error)          {}

// The codes of outcomes, which the condition Accepted of an object has as its reason.
const (
	// Accepted: the servers use this generation.
	Accepted verdict.Code = "Accepted"
	// Invalid: it cannot be used. The last valid generation stays in use, if a server has seen one.
	Invalid verdict.Code = "Invalid"
	// TooLarge: the spec is larger than servers read.
	TooLarge verdict.Code = "TooLarge"
	// LimitExceeded: older objects use up a limit.
	LimitExceeded verdict.Code = "LimitExceeded"
	// Expired: a quarantine has ended.
	Expired verdict.Code = "Expired"
)

// Codes are all codes.
func Codes() []verdict.Code {
	return []verdict.Code{Accepted, Invalid, TooLarge, LimitExceeded, Expired}
}

// outcome says whether servers use an object, and why not.
type outcome struct {
	*object
	Code    verdict.Code
	Message string
	// target is the node or credential that a quarantine cuts off, and reason its reason: for the log.
	target, reason string
	// limited is set if the limit of quarantined nodes decided.
	limited bool
}

// event returns the Event about a broken object.
func (o *outcome) event(kind string) *objectevents.Event {
	return &objectevents.Event{
		About: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: kind, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		Identity: fmt.Sprintf("%s\n%s\n%d\n%s\n%s", kind, o.UID, o.Generation, o.Code, o.Message),
		Type:     corev1.EventTypeWarning, Reason: string(o.Code), Message: o.Message,
	}
}

// broken reports whether someone has to change the object.
func (o *outcome) broken() bool { return o.Code != Accepted && o.Code != Expired }

// same reports whether nothing about an object has changed that is worth a report.
func (o *outcome) same(as *outcome) bool {
	return o.version() == as.version() && o.Code == as.Code && o.Message == as.Message
}

// maxMessage is the maximum size of a message in bytes.
const maxMessage = 900

// clipped limits the size of a text, parts of which users write.
func clipped(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
}
