package bootstrap

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// FuzzRequests sends invalid requests. The attestor sees only documents that encoding/json
// reads as objects too, and every answer conforms to the protocol.
func FuzzRequests(f *testing.F) {
	f.Add("worker-1", "application/json", `{"Document":"TUlJQg=="}`)
	f.Add("Worker_1", "application/json; charset=utf-8", `{"Document":1,"document":2}`)
	f.Add("..", "", `{`)
	f.Add("0", "", "") // without evidence, as kops' node-authorizer asks
	f.Add("a%2fb", "text/plain", "{\"\xff\":[[[[]]]]}")
	for body := range oddjson.Seeds(`{"Document":"TUlJQg=="}`, oddjson.Places(identitydocument.Evidence{})) {
		f.Add("worker-1", "application/json", string(body))
	}
	w := newTestCluster(f)
	var seen []byte
	w.attestor.attest = func(_ context.Context, req *attest.Request) (*attest.Identity, error) {
		seen = req.Body
		return nil, attest.Refuse("Seen", "")
	}
	handler := w.service(nil).Handler(HTTPOptions{MaxBodyBytes: 1 << 10})
	statuses := []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	}
	f.Fuzz(func(t *testing.T, node, contentType, body string) {
		r := httptest.NewRequest(http.MethodPost, "/authorize/x", strings.NewReader(body))
		r.URL = &url.URL{Path: "/authorize/" + node}
		r.Header["Content-Type"] = []string{contentType}
		seen = nil
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		if !strings.HasPrefix(answer.Header().Get("Content-Type"), "application/json") {
			if answer.Code != http.StatusNotFound && answer.Code/100 != 3 {
				t.Fatalf("status %d: %s", answer.Code, answer.Body)
			}
			return // not the path of the protocol
		}
		var document registration
		err := json.Unmarshal(answer.Body.Bytes(), &document)
		if err != nil || document.Status.Allowed || document.Status.Token != "" ||
			document.Status.Reason == "" || !slices.Contains(statuses, answer.Code) {
			t.Errorf("status %d: %s, %v", answer.Code, answer.Body, err)
		}
		var object map[string]any
		if seen != nil && (string(seen) != body || body != "" && (json.Unmarshal(seen, &object) != nil || object == nil)) {
			t.Errorf("the attestor saw %q of %q", seen, body)
		}
	})
}
