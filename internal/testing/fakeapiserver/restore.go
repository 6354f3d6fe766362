package fakeapiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forgotten are the resource versions of a history that the store does not have any more.
type forgotten struct{ after, until uint64 }

// Version returns the current resource version.
func (s *Server) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// RestoreStore restores the store to an earlier resource version, while the API server keeps running. As in Kubernetes,
// lists and watches are answered from its cache, which keeps what the store does not have any more. Only a list at an
// exact resource version that selects a name is read from the store. What is written later has higher resource versions.
func (s *Server) RestoreStore(to uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = append(s.forgotten, forgotten{to, s.version})
}

// Restart ends all connections, and reads the objects again from the store.
func (s *Server) Restart() {
	s.mu.Lock()
	s.objects = map[string]map[string]Object{}
	for i, c := range s.log {
		if s.forgets(c.version) {
			s.log[i].resource = "" // no watch delivers it
			continue
		}
		key := c.namespace + "/" + c.name
		if s.objects[c.resource] == nil {
			s.objects[c.resource] = map[string]Object{}
		}
		if s.objects[c.resource][key] = c.object; c.kind == "DELETED" {
			delete(s.objects[c.resource], key)
		}
	}
	s.mu.Unlock()
	s.Disconnect()
}

// forgets reports whether the store does not have a change. The lock is held.
func (s *Server) forgets(version uint64) bool {
	return slices.ContainsFunc(s.forgotten, func(f forgotten) bool { return f.after < version && version <= f.until })
}

// listExact serves one object from the store, at the resource version of a request.
func (s *Server) listExact(w http.ResponseWriter, r *http.Request, at *place) {
	query := r.URL.Query()
	version, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	name := nameSelected(r)
	if err != nil || name == "" {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "only lists of one name at one resource version are supported")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if version > s.version {
		reply(w, http.StatusGatewayTimeout, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonTimeout, Code: http.StatusGatewayTimeout,
			Message: fmt.Sprint("Too large resource version: ", version),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}},
		})
		return
	}
	items := []Object{}
	for _, c := range s.log {
		if c.resource != at.key() || c.namespace != at.namespace || c.name != name || c.version > version || s.forgets(c.version) {
			continue
		}
		if items = []Object{c.object}; c.kind == "DELETED" {
			items = items[:0]
		}
	}
	reply(w, http.StatusOK, Object{
		"kind": s.kindOf(at) + "List", "apiVersion": at.version, "metadata": Object{"resourceVersion": query.Get("resourceVersion")},
		"items": items,
	})
}
