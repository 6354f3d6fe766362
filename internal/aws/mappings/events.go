package mappings

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/objectevents"
)

// Limits of these events, besides the limits of all events: the log and the metrics have all findings.
const (
	// eventsOfChange is the maximum number of events for one change of a ConfigMap.
	eventsOfChange = 10
	// eventMessage is the maximum size of a message in API servers, in bytes.
	eventMessage = 1024
)

// record records findings as Events of their ConfigMap, as far as the limits allow.
func record(events *objectevents.Recorder, about *corev1.ConfigMap, findings []finding.Finding) {
	for _, f := range findings[:min(len(findings), eventsOfChange)] {
		if !events.Record(event(about, f)) {
			return
		}
	}
}

func event(about *corev1.ConfigMap, f finding.Finding) *objectevents.Event {
	kind := corev1.EventTypeWarning
	if f.Severity == finding.Info {
		kind = corev1.EventTypeNormal
	}
	message := eventText(f)
	return &objectevents.Event{
		About: corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: about.Namespace, Name: about.Name,
			UID: types.UID(about.UID), ResourceVersion: about.ResourceVersion, FieldPath: f.Place.Key,
		},
		Identity: string(about.UID) + "\n" + about.ResourceVersion + "\n" + string(f.Code) + "\n" + message,
		Type:     kind, Reason: string(f.Code), Message: message,
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
