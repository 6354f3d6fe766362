package generate

import (
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Event is one change of one object, as a watch reports it: Object is the new
// state, or, when Deleted, the last one. Object is a *Pod, *PersistentVolume,
// *VolumeAttachment, *ResourceSlice or *PodCertificateRequest.
type Event struct {
	Deleted bool
	Object  any
}

// key identifies an object.
func (e Event) key() string {
	switch o := e.Object.(type) {
	case *corev1.Pod:
		return "pod " + o.Namespace + "/" + o.Name
	case *corev1.PersistentVolume:
		return "pv " + o.Name
	case *storagev1.VolumeAttachment:
		return "va " + o.Name
	case *resourcev1.ResourceSlice:
		return "slice " + o.Name
	case *certificatesv1.PodCertificateRequest:
		return "request " + o.Namespace + "/" + o.Name
	}
	panic(fmt.Sprintf("event of unknown type %T", e.Object))
}

// String names the event and its object.
func (e Event) String() string {
	if e.Deleted {
		return "delete " + e.key()
	}
	return "set " + e.key()
}

// History is a sequence of events on a cluster that starts empty.
type History struct {
	Events []Event
	g      *generator
}

// NewHistory generates steps events, with objects named and sized as in New
// with the same options.
func NewHistory(seed uint64, o Options, steps int) *History {
	h := &History{g: newGenerator(seed, o)}
	s := &simulation{generator: h.g, current: make(map[string]any)}
	for range steps {
		h.Events = append(h.Events, s.step())
	}
	return h
}

// Shuffled returns the events in another order of arrival: the order of each
// object's events is kept, that between objects is not, and some events arrive
// twice, as after a new list.
func (h *History) Shuffled(seed uint64) []Event {
	r := source(seed, "shuffle")
	queues := make(map[string][]Event)
	var order []string
	for _, e := range h.Events {
		queues[e.key()] = append(queues[e.key()], e)
		order = append(order, e.key())
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	events := make([]Event, 0, len(h.Events))
	for _, key := range order {
		e := queues[key][0]
		queues[key] = queues[key][1:]
		events = append(events, e)
		if chance(r, 5) {
			events = append(events, e)
		}
	}
	return events
}

// Compressed returns the events as a watch with gaps shows them: an event that
// another one of the same object follows is dropped with probability
// percent/100, so that a deletion and a re-creation become one change.
func (h *History) Compressed(seed uint64, percent int) []Event {
	r := source(seed, "gaps")
	last := make(map[string]int)
	for i, e := range h.Events {
		last[e.key()] = i
	}
	var events []Event
	for i, e := range h.Events {
		if last[e.key()] == i || !chance(r, percent) {
			events = append(events, e)
		}
	}
	return events
}

// State returns the cluster as it is after the given events.
func (h *History) State(events []Event) *Cluster {
	return h.g.cluster.With(final(events))
}

// FinalState returns the cluster that events lead to.
func FinalState(events []Event) *Cluster { return new(Cluster).With(final(events)) }

// final returns the objects that exist after the events, in a fixed order.
func final(events []Event) []any {
	last := make(map[string]any)
	for _, e := range events {
		if e.Deleted {
			delete(last, e.key())
		} else {
			last[e.key()] = e.Object
		}
	}
	var objects []any
	for _, key := range sortedKeys(last) {
		objects = append(objects, last[key])
	}
	return objects
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// RandomHistory draws the size of a history: long enough that in some of them
// more than 200 pods share an object at one time.
func RandomHistory(seed uint64) (Options, int) {
	o := RandomOptions(seed)
	return o, 50 + source(seed, "steps").IntN(600) + 2*o.Pods
}
