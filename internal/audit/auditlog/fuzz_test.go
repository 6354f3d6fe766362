package auditlog

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// FuzzDecode compares the decoder with the standard library on lines that both accept.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"get",` +
		`"user":{"username":"system:node:worker-1","groups":["system:nodes"],"extra":{"a":["b"]}},` +
		`"sourceIPs":["10.0.0.1"],"objectRef":{"resource":"pods"},"responseStatus":{"code":200},` +
		`"requestReceivedTimestamp":"2026-01-31T12:00:00.000000Z","annotations":{"authorization.k8s.io/decision":"allow"}}`))
	f.Add([]byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` +
		`{"stage":"Panic","verb":"get","requestObject":{"kind":"Pod"}},{"stage":"RequestReceived","requestURI":"/"}]}`))
	f.Add([]byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1beta1","items":null}`))
	f.Add([]byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseStarted","verb":"get",` +
		`"user":null,"sourceIPs":null,"requestReceivedTimestamp":null}`))
	for base, places := range oddLines() {
		for line := range oddjson.Seeds(base, places) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var d Decoder
		handed := 0
		n, err := d.Decode(line, func(e *Event) {
			handed++
			for _, text := range [][]byte{e.RequestObject(), e.in(e.User.Extra), e.in(e.Sources)} {
				if text != nil && !json.Valid(text) && !bytes.ContainsRune(text, '\uFFFD') {
					t.Errorf("a part of the event is not JSON: %q", text)
				}
			}
			e.Source()
			e.Extra(&e.User)
		})
		if err != nil && (n != 0 || handed != 0) || err == nil && n != handed {
			t.Errorf("%d events were reported, of %d, with error %v", handed, n, err)
		}
		if err == nil && n == 1 {
			var d Decoder
			agrees(t, line, &d)
		}
	})
}

func agrees(t *testing.T, line []byte, d *Decoder) {
	var standard struct {
		Kind, Stage, Verb string
		User              struct{ Username string }
	}
	if json.Unmarshal(line, &standard) != nil || standard.Kind != eventKind {
		return
	}
	_, _ = d.Decode(line, func(e *Event) {
		// The standard library also accepts names in another case.
		if bytes.Count(bytes.ToLower(line), []byte(`"username"`)) == 1 && bytes.Contains(line, []byte(`"username"`)) &&
			bytes.Count(bytes.ToLower(line), []byte(`"user"`)) == 1 && bytes.Contains(line, []byte(`"user"`)) &&
			!bytes.Contains(line, []byte(`\u`)) && e.User.Name != standard.User.Username {
			t.Errorf("the user is %q, and %q to the standard library", e.User.Name, standard.User.Username)
		}
	})
}
