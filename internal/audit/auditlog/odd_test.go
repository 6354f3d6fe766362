package auditlog

import (
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

const (
	anEvent = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"get",` +
		`"user":{"username":"system:node:worker-1"},"sourceIPs":["10.0.0.1"],"objectRef":{"resource":"pods"}}`
	aList = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + anEvent + `]}`
)

// oddLines are lines with the places of odd values: an event, alone and in a list.
func oddLines() map[string][]oddjson.Place {
	return map[string][]oddjson.Place{
		anEvent: oddjson.Places(auditv1.Event{}), aList: oddjson.Places(auditv1.EventList{}),
	}
}

// Any line is read whole, or is an error.
func TestOddEventsAreReadOrAnError(t *testing.T) {
	for base, places := range oddLines() {
		var d Decoder
		events, errs := 0, 0
		for name, line := range oddjson.Documents(base, places) {
			handed := 0
			n, err := d.Decode(line, func(e *Event) {
				handed++
				e.Source()
				e.Extra(&e.User)
				e.RequestObject()
			})
			if handed != n || err != nil && n > 0 {
				t.Errorf("%s: %d events were reported, of %d, with error %v", name, handed, n, err)
			}
			if events += n; err != nil {
				errs++
			}
		}
		if events == 0 || errs == 0 {
			t.Errorf("%d events and %d errors: the lines are all valid, or all invalid", events, errs)
		}
	}
}
