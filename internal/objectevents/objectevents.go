// Package objectevents records what is wrong with objects as Events about them.
//
// Events are for people. A user who may write an object can make servers report about it all the time, so
// events are limited, and what exceeds the limits is dropped. Nothing else depends on them.
package objectevents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// atOnce and interval are the rate limit of events.
	atOnce   = 25
	interval = 10 * time.Second
	// maxQueued is the length of the queue.
	maxQueued = 50
	// longestName is how much of the object's name is in the name of its Event.
	longestName = 200
	// createTimeout is the time limit of a request.
	createTimeout = 10 * time.Second
)

// Event is what happened to an object.
type Event struct {
	// About is the object. An Event about one without a namespace is in the namespace default.
	About corev1.ObjectReference
	// Identity is the same for events that are the same, so that only one of several servers creates
	// an Event.
	Identity string
	// Type is the type of the Event: Warning or Normal.
	Type string
	// Reason is a code, and Message says what happened.
	Reason, Message string
}

// Recorder creates Events.
type Recorder struct {
	client kubernetes.Interface
	now    func() time.Time
	failed func(error)
	limit  *rate.Limiter
	queue  chan *corev1.Event
}

// New returns a Recorder that creates Events while Run runs. It calls failed with each error.
func New(client kubernetes.Interface, now func() time.Time, failed func(error)) *Recorder {
	return &Recorder{
		client: client, now: now, failed: failed,
		limit: rate.NewLimiter(rate.Every(interval), atOnce),
		queue: make(chan *corev1.Event, maxQueued),
	}
}

// Record queues an event. It does not wait. It returns false if a limit was reached and the event was
// dropped.
func (r *Recorder) Record(e *Event) bool {
	if !r.limit.AllowN(r.now(), 1) {
		return false
	}
	select {
	case r.queue <- r.event(e):
		return true
	default:
		return false
	}
}

// event returns the Event. Its name is made from the identity.
func (r *Recorder) event(e *Event) *corev1.Event {
	hash, now := sha256.Sum256([]byte(e.Identity)), metav1.NewTime(r.now())
	name := strings.TrimRight(e.About.Name[:min(len(e.About.Name), longestName)], ".-")
	namespace := e.About.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: name + "." + hex.EncodeToString(hash[:8])},
		InvolvedObject: e.About,
		Reason:         e.Reason, Message: e.Message, Type: e.Type, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "node-authorizer"},
	}
}

// Run creates queued Events until the context ends.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case event := <-r.queue:
			if err := r.create(ctx, event); err != nil && ctx.Err() == nil {
				r.failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *Recorder) create(ctx context.Context, event *corev1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	_, err := r.client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	about := &event.InvolvedObject
	name := about.Name
	if about.Namespace != "" {
		name = about.Namespace + "/" + name
	}
	return fmt.Errorf("create an event of %s %s: %w", about.Kind, name, err)
}
