package auditlog

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	kubeaudit "k8s.io/apiserver/pkg/audit"
)

// written returns a line as kube-apiserver's log backend writes it.
func written(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	line, err := runtime.Encode(kubeaudit.Codecs.LegacyCodec(auditv1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func tokenEvent() audit.Event {
	return audit.Event{
		Level: audit.LevelRequest, AuditID: "6f1e0d5c", Stage: audit.StageResponseComplete,
		RequestURI: "/api/v1/namespaces/shop/serviceaccounts/api/token?timeout=10s", Verb: "create",
		User: authenticationv1.UserInfo{
			Username: "system:node:worker-1", UID: "17", Groups: []string{"system:nodes", "system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{"example.com/a<b": {"x", "y"}},
		},
		ImpersonatedUser: &authenticationv1.UserInfo{Username: "ada", Groups: []string{"admins"}},
		SourceIPs:        []string{"192.0.2.7", "10.0.0.1"}, UserAgent: "kubelet/v1.37.1",
		ObjectRef: &audit.ObjectReference{
			APIGroup: "authentication.k8s.io", APIVersion: "v1",
			Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "api",
		},
		ResponseStatus:           &metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no <b>"},
		RequestObject:            &runtime.Unknown{Raw: []byte(`{"kind":"TokenRequest","spec":{}}`), ContentType: runtime.ContentTypeJSON},
		ResponseObject:           &runtime.Unknown{Raw: []byte(`{"kind":"Status"}`), ContentType: runtime.ContentTypeJSON},
		RequestReceivedTimestamp: metav1.NewMicroTime(time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC)),
		Annotations: map[string]string{
			"authorization.k8s.io/decision": "forbid",
			"authorization.k8s.io/reason":   "why",
			"other":                         "x",
		},
	}
}

func TestDecodeReadsWhatKubeAPIServerWrites(t *testing.T) {
	event := tokenEvent()
	list := &audit.EventList{Items: []audit.Event{event, event}}
	for name, test := range map[string]struct {
		line   []byte
		events int
	}{
		"an event":                    {written(t, &event), 1},
		"an event list":               {written(t, list), 2},
		"an event of version v1beta1": {bytes.Replace(written(t, &event), []byte("audit.k8s.io/v1"), []byte("audit.k8s.io/v1beta1"), 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			n, err := d.Decode(test.line, func(e *Event) {
				checkTokenEvent(t, e)
			})
			if err != nil || n != test.events {
				t.Errorf("got %d events, %v", n, err)
			}
		})
	}
}

func checkTokenEvent(t *testing.T, e *Event) {
	t.Helper()
	got := map[string]any{
		"stage": e.Stage, "id": e.AuditID, "uri": e.RequestURI, "verb": e.Verb,
		"user": e.User.Name, "uid": e.User.UID, "groups": e.User.Groups, "extra": e.Extra(&e.User),
		"impersonated": e.Impersonated.Name, "impersonated groups": e.Impersonated.Groups,
		"source": e.Source(), "agent": e.UserAgent, "object": *e.Object, "status": e.Status,
		"request": string(e.RequestObject()), "received": e.Received, "annotations": e.Annotations,
	}
	want := map[string]any{
		"stage": ResponseComplete, "id": "6f1e0d5c", "verb": "create",
		"uri":  "/api/v1/namespaces/shop/serviceaccounts/api/token?timeout=10s",
		"user": "system:node:worker-1", "uid": "17", "groups": []string{"system:nodes", "system:authenticated"},
		"extra":        map[string][]string{"example.com/a<b": {"x", "y"}},
		"impersonated": "ada", "impersonated groups": []string{"admins"},
		"source": "10.0.0.1", "agent": "kubelet/v1.37.1",
		"object": Object{
			Group: "authentication.k8s.io", Version: "v1",
			Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "api",
		},
		"status":  Status{Code: 403, Reason: "Forbidden", Message: "no <b>"},
		"request": `{"kind":"TokenRequest","spec":{}}`, "received": time.Date(2026, 1, 31, 12, 0, 0, 123456000, time.UTC),
		"annotations": Annotations{Decision: "forbid", Reason: "why"},
	}
	if want, got := any(want), any(got); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
}

func TestDecodeEventWithoutOptionalFields(t *testing.T) {
	var d Decoder
	n, err := d.Decode(written(t, &audit.Event{Stage: audit.StageRequestReceived, Verb: "get", RequestURI: "/healthz"}), func(e *Event) {
		if e.Object != nil || e.Impersonated != nil || e.RequestObject() != nil ||
			e.Source() != "" || e.Extra(&e.User) != nil || !e.Received.IsZero() {
			t.Errorf("got %+v", e)
		}
		if e.Answered() || e.Last() {
			t.Error("a request that was only received is reported as answered")
		}
	})
	if n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func TestDecodeRejectsLinesThatAreNotEvents(t *testing.T) {
	const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"get"`
	for name, test := range map[string]struct{ line, want string }{
		"another kind": {
			`{"kind":"Pod","apiVersion":"v1"}`,
			`kind "Pod" of apiVersion "v1": want Event or EventList of audit.k8s.io/v1 or v1beta1`,
		},
		"an obsolete version": {
			`{"kind":"Event","apiVersion":"audit.k8s.io/v1alpha1"}`,
			`kind "Event" of apiVersion "audit.k8s.io/v1alpha1": want Event or EventList of audit.k8s.io/v1 or v1beta1`,
		},
		"an event of the cluster": {
			`{"kind":"Event","apiVersion":"v1"}`,
			`kind "Event" of apiVersion "v1": want Event or EventList of audit.k8s.io/v1 or v1beta1`,
		},
		"a field of another type": {event + `,"user":{"groups":"system:nodes"}}`, `user.groups: want a list, got a string`},
		"half a line":             {event, ErrUnfinished.Error()},
		"two lines without a line break": {
			event + `,"us` + event + "}",
			"not valid JSON: invalid character 'k' after object name (expecting ':')",
		},
		"text after the object":  {event + "} x", "not valid JSON: invalid character 'x' after top-level value"},
		"a list of events":       {"[" + event + "}]", "want one event on each line, not a list; jq -c '.[]' writes it so"},
		"an event on many lines": {"{", "want a whole event on each line; jq -c . writes it so"},
		"the format legacy": {
			`2026-01-31T12:00:00.000000000Z AUDIT: id="6f1e" stage="ResponseComplete" ip="10.0.0.1" method="get"`,
			"the log is in the format legacy, which does not say enough; let kube-apiserver write --audit-log-format=json",
		},
		"an unknown stage": {
			strings.Replace(event, "ResponseComplete", "Done", 1) + "}",
			`stage: want RequestReceived, ResponseStarted, ResponseComplete or Panic, got "Done"`,
		},
		"no request": {strings.Replace(event, `"get"`, `""`, 1) + "}", "the event has neither a verb nor a requestURI"},
		"an item of a list": {
			`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + event + `},{"stage":1}]}`,
			"items[1]: stage: want a string, got a number",
		},
		"items of another type": {`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":{}}`, "items: want a list, got an object"},
	} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			n, err := d.Decode([]byte(test.line), func(e *Event) { t.Errorf("reported %+v", e) })
			if n != 0 || err == nil || err.Error() != test.want {
				t.Errorf("got %d events and\n%v, want\n%s", n, err, test.want)
			}
		})
	}
}

func TestDecodeLineOfSpaces(t *testing.T) {
	var d Decoder
	if n, err := d.Decode([]byte(" \t\r"), nil); n != 0 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}
