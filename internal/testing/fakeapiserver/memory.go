package fakeapiserver

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Call is one request of a client in memory.
type Call struct {
	// Verb is the verb for RBAC: get, list, watch, create, update, delete.
	Verb string
	// Resource is the plural, with the subresource: "nodeattestations/status".
	Resource, Namespace, Name string
}

func (c Call) String() string {
	return strings.TrimRight(c.Verb+" "+c.Resource+" "+c.Name, " ")
}

// Intercept intercepts a call of a client in memory. It may call do, which executes
// the call and returns the response, or not. The context is the context of the caller.
type Intercept func(ctx context.Context, call Call, do func() *http.Response) (*http.Response, error)

// Intercept sets a function that intercepts all calls in memory except watches; nil
// removes it.
func (s *Server) Intercept(intercept Intercept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intercept = intercept
}

// Calls returns the calls in memory since the last call of Calls, without watches.
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

// InMemory returns the config of clients that reach the server without a network.
// They may do what the function allows; everything if it is nil.
func (s *Server) InMemory(allowed func(Call) bool) *rest.Config {
	if allowed == nil {
		allowed = func(Call) bool { return true }
	}
	return &rest.Config{
		Host: "http://memory.example", Transport: roundTripper{s, allowed}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
}

// Failure returns the response of an API server that cannot answer.
func Failure(message string) *http.Response {
	return recorded(func(w http.ResponseWriter) {
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, message)
	})
}

func recorded(answer func(http.ResponseWriter)) *http.Response {
	recorder := httptest.NewRecorder()
	answer(recorder)
	return recorder.Result()
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
	call := callOf(r)
	if !t.allowed(call) {
		return recorded(func(w http.ResponseWriter) {
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, call.String()+" is forbidden")
		}), nil
	}
	if call.Verb == "watch" {
		return t.s.stream(r)
	}
	do := func() *http.Response {
		again := r.Clone(context.WithoutCancel(r.Context())) // the request takes effect
		again.Body = io.NopCloser(bytes.NewReader(body))
		return recorded(func(w http.ResponseWriter) { t.s.handle(w, again) })
	}
	t.s.mu.Lock()
	intercept := t.s.intercept
	t.s.calls = append(t.s.calls, call)
	t.s.mu.Unlock()
	if intercept != nil {
		return intercept(r.Context(), call, do)
	}
	return do(), nil
}

func callOf(r *http.Request) Call {
	at, ok := parsePath(r.URL.Path)
	if !ok {
		return Call{Verb: strings.ToLower(r.Method), Resource: r.URL.Path}
	}
	call := Call{Resource: at.resource, Namespace: at.namespace, Name: at.name}
	if at.subresource != "" {
		call.Resource += "/" + at.subresource
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		call.Verb = "watch"
	case r.Method == http.MethodGet && call.Name == "":
		call.Verb = "list"
	default:
		call.Verb = map[string]string{
			http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete",
		}[r.Method]
	}
	return call
}

// stream serves a watch.
func (s *Server) stream(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(r.Context().Err()) })
	began := make(chan *http.Response, 1)
	w := &streamWriter{header: http.Header{}, body: writer, begin: func(response *http.Response) {
		response.Body = reader
		began <- response
	}}
	go func() {
		defer stop()
		defer writer.Close()
		s.handle(w, r)
	}()
	select {
	case response := <-began:
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// streamWriter writes a streamed response.
type streamWriter struct {
	header  http.Header
	body    *io.PipeWriter
	begin   func(*http.Response)
	started bool
}

// Header implements http.ResponseWriter.
func (w *streamWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *streamWriter) WriteHeader(status int) {
	if w.started {
		return
	}
	w.started = true
	w.begin(&http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: maps.Clone(w.header), ContentLength: -1})
}

// Write implements http.ResponseWriter.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher.
func (w *streamWriter) Flush() { w.WriteHeader(http.StatusOK) }
