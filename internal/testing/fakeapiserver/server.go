// Package fakeapiserver is a fake API server for tests. It keeps objects of any
// resource in memory and serves them as Kubernetes does: with optimistic locking by
// resource version, subresources that change only their part, deletion of owned
// objects, watches, and faults on demand.
//
// Clients reach it over HTTP ([Server.Config], [Options].Fault), or without a network
// ([Server.InMemory]), where a test can intercept each call before and after it takes
// effect ([Server.Intercept]).
//
// It has no schemas except for the rules of the ledger, treats all clients as one
// user, and allows everything by default.
package fakeapiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Fault is a failure of a request.
type Fault int

const (
	// NoFault serves the request.
	NoFault Fault = iota
	// Unavailable answers with 503 and does nothing.
	Unavailable
	// Internal answers with 500 and does nothing.
	Internal
	// Cut closes the connection and does nothing.
	Cut
	// AnswerLost executes the request, and closes the connection without a response.
	AnswerLost
	// Forbidden answers with 403 and does nothing.
	Forbidden
)

// Options are options for a server. All are optional.
type Options struct {
	// Clock is the time of creation timestamps.
	Clock func() time.Time
	// Fault returns the fault of each request; it is called concurrently.
	Fault func(*http.Request) Fault
	// Allow answers SubjectAccessReviews, by their spec; without it all are
	// allowed.
	Allow func(spec map[string]any) bool
	// Review, if set, answers them instead. A status other than 201 is returned as an
	// error.
	Review func(spec map[string]any) (allowed bool, status int)
	// ReviewStatus, if set, adds to the status of their answers, which it can change.
	ReviewStatus func(spec, status map[string]any)
	// Resources, if set, are those that discovery lists and that can be used: kinds by
	// GROUP/VERSION and resource. Without it there is no discovery, and any resource can
	// be used.
	Resources map[string]map[string]string
	// Version is the version of Kubernetes; v1.37.1 without it.
	Version func() string
	// WatchList supports watches with initial events.
	WatchList bool
}

// User is the user of every client.
const User = "ada"

// Object is a resource's object as decoded JSON.
type Object = map[string]any

// Server is a running API server. It is safe for concurrent use.
type Server struct {
	opts   Options
	listen func() *httptest.Server // starts to listen with the first call

	mu      sync.Mutex
	http    *httptest.Server // nil until it listens
	version uint64
	// objects are by resource (GROUP/RESOURCE) and then by NAMESPACE/NAME.
	objects map[string]map[string]Object
	// forgotten is what the store does not have any more, although the API server has it.
	forgotten []forgotten
	// log is every change, and changed is closed at the next one.
	log     []change
	changed chan struct{}
	ended   chan struct{}

	// intercept and calls are for clients in memory.
	intercept Intercept
	calls     []Call
}

type change struct {
	resource, namespace, name string
	kind                      string // ADDED, MODIFIED or DELETED
	version                   uint64
	object                    Object
}

// New returns a server without objects. It listens when a client over HTTP is made.
func New(opts Options) *Server {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Fault == nil {
		opts.Fault = func(*http.Request) Fault { return NoFault }
	}
	if opts.Allow == nil {
		opts.Allow = func(map[string]any) bool { return true }
	}
	if opts.Review == nil {
		opts.Review = func(spec map[string]any) (bool, int) { return opts.Allow(spec), http.StatusCreated }
	}
	if opts.Version == nil {
		opts.Version = func() string { return "v1.37.1" }
	}
	s := &Server{
		opts: opts, version: 1, objects: map[string]map[string]Object{},
		changed: make(chan struct{}), ended: make(chan struct{}),
	}
	s.listen = sync.OnceValue(func() *httptest.Server {
		listener := httptest.NewServer(http.HandlerFunc(s.serve))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.http = listener
		return listener
	})
	return s
}

// Close ends the server and every watch.
func (s *Server) Close() {
	close(s.ended)
	s.Disconnect()
	if listener := s.listener(); listener != nil {
		listener.Close()
	}
}

// Disconnect ends every connection, with the watches on them.
func (s *Server) Disconnect() {
	if listener := s.listener(); listener != nil {
		listener.CloseClientConnections()
	}
}

func (s *Server) listener() *httptest.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.http
}

// Config returns the config of clients over HTTP.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.URL(), QPS: -1} }

// URL returns the address of the server.
func (s *Server) URL() string { return s.listen().URL }

// ResourceVersion returns the resource version of the last change.
func (s *Server) ResourceVersion() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// serve applies the fault of the request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch s.opts.Fault(r) {
	case Unavailable:
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "unavailable for the test")
	case Internal:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "broken for the test")
	case Forbidden:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, path.Base(r.URL.Path)+" is forbidden")
	case Cut:
		panic(http.ErrAbortHandler)
	case AnswerLost:
		s.handle(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case NoFault:
		s.handle(w, r)
	}
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	at, ok := parsePath(r.URL.Path)
	switch {
	case r.URL.Path == "/version":
		s.serveVersion(w)
	case s.opts.Resources != nil && s.discovery(w, r.URL.Path):
	case !ok:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such path")
	case at.resource == "subjectaccessreviews":
		s.review(w, r)
	case at.resource == "selfsubjectreviews":
		reply(w, http.StatusCreated, Object{
			"kind": "SelfSubjectReview", "apiVersion": at.version, "status": Object{"userInfo": Object{"username": User}},
		})
	case s.opts.Resources != nil && s.opts.Resources[at.version][at.resource] == "":
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such resource")
	case r.Method == http.MethodGet && at.name == "" && r.URL.Query().Get("watch") != "":
		s.watch(w, r, at)
	case r.Method == http.MethodGet && at.name == "":
		s.list(w, r, at)
	default:
		s.one(w, r, at)
	}
}

func (s *Server) review(w http.ResponseWriter, r *http.Request) {
	review, err := read(r)
	if err != nil || review == nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("no review: %v", err))
		return
	}
	allowed, status := s.opts.Review(part(review, "spec"))
	if status != http.StatusCreated {
		refuse(w, status, metav1.StatusReasonUnknown, "failed for the test")
		return
	}
	answer := Object{"allowed": allowed}
	if s.opts.ReviewStatus != nil {
		s.opts.ReviewStatus(part(review, "spec"), answer)
	}
	review["status"] = answer
	reply(w, http.StatusCreated, review)
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	reply(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: message,
	})
}

// part returns a map within an object; nil if it does not exist.
func part(o Object, name string) Object {
	inner, _ := o[name].(Object)
	return inner
}

// metadata returns an object's metadata, and creates it if necessary.
func metadata(o Object) Object {
	if found := part(o, "metadata"); found != nil {
		return found
	}
	made := Object{}
	o["metadata"] = made
	return made
}
