package webhook_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// handlers returns the endpoints, with evaluators that must not be called.
func handlers(t testing.TB, opts webhook.Options) map[string]http.Handler {
	t.Helper()
	return map[string]http.Handler{
		"authorize": webhook.Authorize(func(context.Context, *access.Request) (decision.Opinion, error) {
			t.Error("the authorizer was asked")
			return decision.Opinion{}, nil
		}, opts),
		"admit": webhook.Admit(func(context.Context, *noderestriction.Request) noderestriction.Answer {
			t.Error("NodeRestriction was asked")
			return noderestriction.Answer{}
		}, readsAll, opts),
		"mutate": webhook.Mutate(opts),
		"authenticate": webhook.Authenticate(func(context.Context, string) (*iam.User, error) {
			t.Error("the authenticator was asked")
			return nil, nil
		}, nil, opts),
	}
}

// rejected decodes the status of an invalid request.
func rejected(t testing.TB, w *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if status.Kind != "Status" || status.APIVersion != "v1" || status.Status != metav1.StatusFailure ||
		int(status.Code) != w.Code || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answer with status %d and headers %v is not a failure: %s", w.Code, w.Header(), w.Body)
	}
	return status
}

func TestInvalidRequests(t *testing.T) {
	const maxBody = 64 << 10
	for _, tc := range []struct {
		rule     string
		endpoint string // empty: all
		method   string // POST, unless given
		header   http.Header
		body     string
		status   int
		reason   string
		message  string
	}{
		{
			rule: "a GET", method: http.MethodGet, status: 405, reason: webhook.ReasonMethod, message: "method GET: want POST",
		},
		{
			rule: "a PUT", method: http.MethodPut, body: "{}", status: 405, reason: webhook.ReasonMethod, message: "method PUT: want POST",
		},
		{
			rule: "protobuf", header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}}, body: "k8s\x00",
			status: 415, reason: webhook.ReasonContentType,
			message: `content type "application/vnd.kubernetes.protobuf": want application/json`,
		},
		{
			rule: "no content type", header: http.Header{}, body: "{}",
			status: 415, reason: webhook.ReasonContentType, message: `content type "": want application/json`,
		},
		{
			rule: "compressed", header: http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, body: "\x1f\x8b",
			status: 415, reason: webhook.ReasonContentType, message: `content encoding "gzip": want none`,
		},
		{
			rule: "larger than the limit", body: `{"kind":"` + strings.Repeat("a", maxBody) + `"}`,
			status: 413, reason: webhook.ReasonTooLarge, message: "request body is larger than 65536 bytes",
		},
		{rule: "empty", body: "", status: 400, reason: webhook.ReasonMalformed, message: "request body: "},
		{rule: "not JSON", body: "hello", status: 400, reason: webhook.ReasonMalformed, message: "request body: not valid JSON"},
		{rule: "not an object", body: "[]", status: 400, reason: webhook.ReasonMalformed, message: "request body: "},
		{rule: "null", body: "null", status: 400, reason: webhook.ReasonMalformed, message: `request body: kind "" of apiVersion ""`},
		{
			rule: "cut short", endpoint: "authorize", body: document(t, "access.json")[:200],
			status: 400, reason: webhook.ReasonMalformed, message: "request body: not valid JSON",
		},
		{
			rule: "cut short", endpoint: "admit", body: document(t, "node-status.json")[:900],
			status: 400, reason: webhook.ReasonMalformed, message: "request body: not valid JSON",
		},
		{
			rule: "two documents", endpoint: "authorize", body: document(t, "access.json") + document(t, "access.json"),
			status: 400, reason: webhook.ReasonMalformed, message: "request body: not valid JSON",
		},
		{
			rule: "an admission review", endpoint: "authorize", body: document(t, "node-status.json"),
			status: 400, reason: webhook.ReasonMalformed,
			message: `request body: kind "AdmissionReview" of apiVersion "admission.k8s.io/v1": ` +
				`want SubjectAccessReview of authorization.k8s.io/v1`,
		},
		{
			rule: "an access review", endpoint: "admit", body: document(t, "access.json"),
			status: 400, reason: webhook.ReasonMalformed,
			message: `request body: kind "SubjectAccessReview" of apiVersion "authorization.k8s.io/v1": ` +
				`want AdmissionReview of admission.k8s.io/v1`,
		},
		{
			rule: "a token review", endpoint: "authorize", body: document(t, "token.json"),
			status: 400, reason: webhook.ReasonMalformed,
			message: `request body: kind "TokenReview" of apiVersion "authentication.k8s.io/v1": ` +
				`want SubjectAccessReview of authorization.k8s.io/v1`,
		},
		{
			rule: "an access review", endpoint: "authenticate", body: document(t, "access.json"),
			status: 400, reason: webhook.ReasonMalformed,
			message: `request body: kind "SubjectAccessReview" of apiVersion "authorization.k8s.io/v1": ` +
				`want TokenReview of authentication.k8s.io/v1 or v1beta1`,
		},
		{
			rule: "a token of another type", endpoint: "authenticate",
			body:   strings.Replace(document(t, "token.json"), `"token":`, `"token": 1, "x":`, 1),
			status: 400, reason: webhook.ReasonMalformed, message: "request body: spec.token: want a string, got a number",
		},
		{
			rule: "an unknown version", endpoint: "authorize",
			body:   strings.Replace(document(t, "access.json"), "k8s.io/v1", "k8s.io/v2", 1),
			status: 400, reason: webhook.ReasonMalformed,
			message: `request body: kind "SubjectAccessReview" of apiVersion "authorization.k8s.io/v2": want`,
		},
		{
			rule: "a removed version", endpoint: "mutate",
			body:   strings.Replace(document(t, "pod-create.json"), "k8s.io/v1", "k8s.io/v1beta1", 1),
			status: 400, reason: webhook.ReasonMalformed,
			message: `request body: kind "AdmissionReview" of apiVersion "admission.k8s.io/v1beta1": want`,
		},
		{
			rule: "a field of another type", endpoint: "authorize",
			body:   strings.Replace(document(t, "access.json"), `"get"`, "1", 1),
			status: 400, reason: webhook.ReasonMalformed,
			message: "request body: spec.resourceAttributes.verb: want a string, got a number",
		},
		{
			rule: "a review that is not valid", endpoint: "authorize",
			body:   `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"u"}}`,
			status: 400, reason: webhook.ReasonMalformed, message: "request body: spec: Invalid value",
		},
		{
			rule: "a review without a request", endpoint: "admit", body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`,
			status: 400, reason: webhook.ReasonMalformed, message: "request body: request: Required value",
		},
		{
			rule: "an object of another type", endpoint: "mutate",
			body:   strings.Replace(document(t, "pod-create.json"), `"containers": [`, `"containers": [1, `, 1),
			status: 400, reason: webhook.ReasonMalformed,
			message: "request body: request.object.spec.containers[0]: want an object, got a number",
		},
		{
			rule: "nested too deep", body: `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}",
			status: 400, reason: webhook.ReasonMalformed, message: "request body: not valid JSON: exceeded max depth",
		},
		{
			rule: "nested too deep in a field that is not read", endpoint: "authorize",
			body: strings.Replace(document(t, "access.json"), `"creationTimestamp": null`,
				`"a":`+strings.Repeat(`{"":`, 10_000)+"1"+strings.Repeat("}", 10_000), 1),
			status: 400, reason: webhook.ReasonMalformed, message: "request body: not valid JSON: exceeded max depth",
		},
		{
			rule: "a field twice", endpoint: "authorize",
			body:   strings.Replace(document(t, "access.json"), `"verb"`, `"verb": "list", "verb"`, 1),
			status: 400, reason: webhook.ReasonMalformed, message: "request body: spec.resourceAttributes.verb: a field is given twice",
		},
	} {
		if tc.method == "" {
			tc.method = http.MethodPost
		}
		if tc.header == nil {
			tc.header = http.Header{"Content-Type": {"application/json"}}
		}
		t.Run(tc.rule+" "+tc.endpoint, func(t *testing.T) {
			var reasons []string
			opts := webhook.Options{MaxBodyBytes: maxBody, Rejected: func(r string) { reasons = append(reasons, r) }}
			for name, handler := range handlers(t, opts) {
				if tc.endpoint != "" && tc.endpoint != name {
					continue
				}
				r := httptest.NewRequest(tc.method, "/"+name, strings.NewReader(tc.body))
				r.Header = tc.header
				w := httptest.NewRecorder()
				reasons = nil
				handler.ServeHTTP(w, r)
				status := rejected(t, w)
				if w.Code != tc.status || !strings.HasPrefix(status.Message, tc.message) ||
					len(reasons) != 1 || reasons[0] != tc.reason {
					t.Errorf("%s: status %d, reasons %q, message %q", name, w.Code, reasons, status.Message)
				}
				if allow := w.Header().Get("Allow"); (allow == "POST") != (tc.status == 405) {
					t.Errorf("%s: Allow is %q", name, allow)
				}
			}
		})
	}
}

// A body of unknown length is not read beyond the limit.
func TestReadingStopsAtTheLimit(t *testing.T) {
	for name, handler := range handlers(t, webhook.Options{MaxBodyBytes: 1000}) {
		endless := &countingReader{Reader: iotest.OneByteReader(zeros{})}
		r := httptest.NewRequest(http.MethodPost, "/", endless)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if status := rejected(t, w); status.Code != 413 || endless.n > 1001 {
			t.Errorf("%s: status %d after %d bytes", name, status.Code, endless.n)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

type countingReader struct {
	io.Reader
	n int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += n
	return n, err
}

func TestConnectionsThatBreak(t *testing.T) {
	for err, message := range map[error]string{
		io.ErrUnexpectedEOF:                    "request body ends early, after 10 bytes",
		errors.New("connection reset by peer"): "read request body: connection reset by peer",
	} {
		for name, handler := range handlers(t, webhook.Options{}) {
			body := io.MultiReader(strings.NewReader(`{"kind":"S`), iotest.ErrReader(err))
			r := httptest.NewRequest(http.MethodPost, "/", body)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if status := rejected(t, w); status.Code != 400 || status.Message != message {
				t.Errorf("%s: %d %s", name, status.Code, status.Message)
			}
		}
	}
}

// A truncated body on a real connection is reported, too.
func TestTruncatedBodyOnTheWire(t *testing.T) {
	server := httptest.NewServer(handlers(t, webhook.Options{})["authorize"])
	defer server.Close()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprint(connection, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{}")
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 400 || !strings.Contains(string(text), "request body ends early, after 2 bytes") {
		t.Errorf("%d %s, %v", answer.StatusCode, text, err)
	}
}
