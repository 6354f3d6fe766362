package containment

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/objectevents"
)

// recordBroken records Events about broken objects, as far as the limits of events allow. The status,
// the log and the metrics do not depend on them.
func recordBroken(events *objectevents.Recorder, kind string, broken []outcome) {
	for i := range broken {
		if !events.Record(event(kind, &broken[i])) {
			return
		}
	}
}

func event(kind string, o *outcome) *objectevents.Event {
	return &objectevents.Event{
		About: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: kind, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		Identity: fmt.Sprintf("%s\n%s\n%d\n%s\n%s", kind, o.UID, o.Generation, o.Code, o.Message),
		Type:     corev1.EventTypeWarning, Reason: string(o.Code), Message: o.Message,
	}
}
