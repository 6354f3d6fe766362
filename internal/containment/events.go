package containment

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

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// Limits of events: the status, the log and the metrics do not depend on them.
const (
	// eventsAtOnce and eventInterval are the rate limit of events.
	eventsAtOnce  = 25
	eventInterval = 10 * time.Second
	// eventsWaiting is the length of the queue.
	eventsWaiting = 50
	// eventNamespace is where Events about cluster-scoped objects are.
	eventNamespace = metav1.NamespaceDefault
	// longestName is how much of the object's name is in the name of its Event.
	longestName = 200
)

// events records what is wrong with objects as Events about them. The name of an Event is a hash of
// its message and the generation of the object, so that only one of several servers creates it.
type events struct {
	client   kubernetes.Interface
	now      func() time.Time
	limit    *rate.Limiter
	observer Observer
	waiting  chan *corev1.Event
}

func newEvents(client kubernetes.Interface, opts *Options) *events {
	return &events{
		client: client, now: opts.Now, observer: opts.Observer,
		limit:   rate.NewLimiter(rate.Every(eventInterval), eventsAtOnce),
		waiting: make(chan *corev1.Event, eventsWaiting),
	}
}

// queue queues events for broken objects. It does not wait.
func (e *events) queue(kind string, broken []outcome) {
	for i := range broken {
		if !e.limit.AllowN(e.now(), 1) {
			return
		}
		select {
		case e.waiting <- e.event(kind, &broken[i]):
		default:
			return
		}
	}
}

func (e *events) event(kind string, o *outcome) *corev1.Event {
	hash := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%s", kind, o.UID, o.Generation, o.Code, o.Message))
	now := metav1.NewTime(e.now())
	name := strings.TrimRight(o.Name[:min(len(o.Name), longestName)], ".-")
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: eventNamespace, Name: name + "." + hex.EncodeToString(hash[:8])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: kind, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		Reason: string(o.Code), Message: o.Message, Type: corev1.EventTypeWarning, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "node-authorizer"},
	}
}

// write creates queued events until the context ends.
func (e *events) write(ctx context.Context) {
	for {
		select {
		case event := <-e.waiting:
			if err := e.create(ctx, event); err != nil && ctx.Err() == nil {
				e.observer.ContainmentWriteFailed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (e *events) create(ctx context.Context, event *corev1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := e.client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create an event of %s %s: %w", event.InvolvedObject.Kind, event.InvolvedObject.Name, err)
}
