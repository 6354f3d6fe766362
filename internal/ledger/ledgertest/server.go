// Package ledgertest is as much of an API server as the ledger needs, in memory:
// nodeattestations, secrets, nodes and certificate signing requests, with resource
// versions, conflicts, the status subresource, watches and owned objects that go
// with their owner.
//
// Tests put it behind the real clients, and can cut each call before or after it
// took effect.
package ledgertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Call is one request to the server.
type Call struct {
	// Verb is that of RBAC: get, list, watch, create, update, delete.
	Verb string
	// Resource is the plural, with the subresource: "nodeattestations/status".
	Resource, Namespace, Name string
}

func (c Call) String() string {
	return strings.TrimRight(c.Verb+" "+c.Resource+" "+c.Name, " ")
}

// Intercept stands between clients and the server: it may call do, which has the
// call take effect and returns the answer, or not. The context is that of the
// caller.
type Intercept func(ctx context.Context, call Call, do func() *http.Response) (*http.Response, error)

// Server is an API server in memory. It is safe for concurrent use.
type Server struct {
	clock func() time.Time

	mu      sync.Mutex
	changed chan struct{} // closed with each change
	version int
	objects map[key]object
	events  []event
	calls   []Call
	between Intercept
}

type key struct{ resource, namespace, name string }

type object map[string]any

type event struct {
	version  int
	resource string
	kind     string
	document []byte
}

// NewServer returns an empty server.
func NewServer(clock func() time.Time) *Server {
	return &Server{clock: clock, changed: make(chan struct{}), objects: map[key]object{}}
}

// Config is that of clients that may do everything.
func (s *Server) Config() *rest.Config {
	return s.ConfigFor(func(Call) bool { return true })
}

// ConfigFor is that of clients that may do what the function allows.
func (s *Server) ConfigFor(allowed func(Call) bool) *rest.Config {
	return &rest.Config{
		Host: "http://memory.example", Transport: roundTripper{s, allowed}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

// Version is the resource version of the last change.
func (s *Server) Version() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Intercept puts a function before all calls but watches; nil takes it away.
func (s *Server) Intercept(intercept Intercept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.between = intercept
}

// Calls returns what was asked since the last time, watches left out.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []string
	for _, call := range s.calls {
		calls = append(calls, call.String())
	}
	s.calls = nil
	return calls
}

type roundTripper struct {
	s       *Server
	allowed func(Call) bool
}

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	call, err := parse(r.Method, r.URL)
	if err != nil {
		return nil, err
	}
	if !t.allowed(call) {
		return failure(http.StatusForbidden, metav1.StatusReasonForbidden, call.String()+" is forbidden"), nil
	}
	if call.Verb == "watch" {
		return t.s.watch(r, call)
	}
	do := func() *http.Response { return t.s.do(call, body) }
	t.s.mu.Lock()
	intercept := t.s.between
	t.s.calls = append(t.s.calls, call)
	t.s.mu.Unlock()
	if intercept != nil {
		return intercept(r.Context(), call, do)
	}
	return do(), nil
}

// parse understands the paths of the resources: /api/v1/..., /apis/GROUP/VERSION/...
func parse(method string, u *url.URL) (Call, error) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	skip := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if skip == 0 || len(parts) <= skip {
		return Call{}, fmt.Errorf("no such path: %s", u.Path)
	}
	var call Call
	if parts = parts[skip:]; parts[0] == "namespaces" && len(parts) > 2 {
		call.Namespace, parts = parts[1], parts[2:]
	}
	call.Resource = parts[0]
	if len(parts) > 1 {
		call.Name = parts[1]
	}
	if len(parts) > 2 {
		call.Resource += "/" + parts[2]
	}
	switch {
	case method == http.MethodGet && u.Query().Get("watch") != "":
		call.Verb = "watch"
	case method == http.MethodGet && call.Name == "":
		call.Verb = "list"
	default:
		call.Verb = map[string]string{
			http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete",
		}[method]
	}
	return call, nil
}

func (s *Server) do(call Call, body []byte) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource, subresource, _ := strings.Cut(call.Resource, "/")
	k := key{resource, call.Namespace, call.Name}
	var sent object
	if len(body) > 0 {
		if err := json.Unmarshal(body, &sent); err != nil {
			return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		}
	}
	switch call.Verb {
	case "get":
		return s.get(k)
	case "list":
		return s.list(k)
	case "create":
		return s.create(k, sent)
	case "update":
		return s.update(k, subresource, sent)
	case "delete":
		return s.delete(k, sent)
	}
	return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, call.String())
}

func (s *Server) get(k key) *http.Response {
	found, ok := s.objects[k]
	if !ok {
		return notFound(k)
	}
	return answer(http.StatusOK, found)
}

func (s *Server) list(k key) *http.Response {
	items := []object{}
	for _, other := range s.keys(k.resource) {
		if k.namespace == "" || k.namespace == other.namespace {
			items = append(items, s.objects[other])
		}
	}
	kind := kinds[k.resource]
	return answer(http.StatusOK, object{
		"apiVersion": kind.apiVersion, "kind": kind.name + "List", "items": items,
		"metadata": object{"resourceVersion": strconv.Itoa(s.version)},
	})
}

func (s *Server) keys(resource string) []key {
	return slices.SortedFunc(func(yield func(key) bool) {
		for k := range maps.Keys(s.objects) {
			if k.resource == resource && !yield(k) {
				return
			}
		}
	}, func(a, b key) int { return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name) })
}

// answer renders a document.
func answer(status int, document any) *http.Response {
	text, err := json.Marshal(document)
	if err != nil {
		panic(err) // it was made here
	}
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}

func failure(status int, reason metav1.StatusReason, message string) *http.Response {
	return answer(status, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(status), Reason: reason, Message: message,
	})
}

// Failure is an answer with which an API server says that it cannot answer.
func Failure(message string) *http.Response {
	return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, message)
}

func notFound(k key) *http.Response {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", k.resource, k.name))
}
