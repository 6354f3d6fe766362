package mappings

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/finding"
)

// Limits of events: the log and the metrics have all findings.
const (
	// eventsOfChange is the maximum number of events for one change of a ConfigMap.
	eventsOfChange = 10
	// eventsAtOnce and eventInterval are the rate limit of events. An attacker may edit a
	// ConfigMap constantly.
	eventsAtOnce  = 25
	eventInterval = 10 * time.Second
	// eventsWaiting is the length of the queue.
	eventsWaiting = 50
	eventTimeout  = 10 * time.Second
	// eventMessage is the maximum size of a message in API servers, in bytes.
	eventMessage = 1024
)

// events records findings as Events of their ConfigMap. The name of an Event is a hash of
// its message and the version of the ConfigMap, so that only one of several servers
// creates it.
type events struct {
	client   kubernetes.Interface
	now      func() time.Time
	limit    *rate.Limiter
	observer Observer
	waiting  chan *corev1.Event
}

func newEvents(client kubernetes.Interface, opts Options) *events {
	return &events{
		client: client, now: opts.Now, observer: opts.Observer,
		limit:   rate.NewLimiter(rate.Every(eventInterval), eventsAtOnce),
		waiting: make(chan *corev1.Event, eventsWaiting),
	}
}

// queue queues events for findings. It does not wait.
func (e *events) queue(about *corev1.ConfigMap, findings []finding.Finding) {
	for i, f := range findings {
		if i == eventsOfChange || !e.limit.AllowN(e.now(), 1) {
			return
		}
		select {
		case e.waiting <- e.event(about, f):
		default:
			return
		}
	}
}

func (e *events) event(about *corev1.ConfigMap, f finding.Finding) *corev1.Event {
	kind := corev1.EventTypeWarning
	if f.Severity == finding.Info {
		kind = corev1.EventTypeNormal
	}
	message := eventText(f)
	hash := sha256.Sum256([]byte(string(about.UID) + "\n" + about.ResourceVersion + "\n" + string(f.Code) + "\n" + message))
	now := metav1.NewTime(e.now())
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: about.Name + "." + hex.EncodeToString(hash[:8])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: about.Namespace, Name: about.Name,
			UID: types.UID(about.UID), ResourceVersion: about.ResourceVersion, FieldPath: f.Place.Key,
		},
		Reason: string(f.Code), Message: message, Type: kind, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "node-authorizer"},
	}
}

// eventText returns the message of an event.
func eventText(f finding.Finding) string {
	text := f.Message
	place := f.Place
	place.Object = ""
	if at := place.String(); at != "" {
		text = at + ": " + text
	}
	for _, more := range []string{f.Consequence, f.Remedy} {
		if more != "" {
			text += "; " + more
		}
	}
	if len(text) > eventMessage {
		text = strings.ToValidUTF8(text[:eventMessage-len("…")], "") + "…"
	}
	return text
}

// write creates queued events until the context ends.
func (e *events) write(ctx context.Context) {
	for {
		select {
		case event := <-e.waiting:
			if err := e.create(ctx, event); err != nil && ctx.Err() == nil {
				e.observer.EventFailed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (e *events) create(ctx context.Context, event *corev1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	_, err := e.client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create an event of ConfigMap %s/%s: %w", event.Namespace, event.InvolvedObject.Name, err)
}
