package fakeapiserver

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// initial returns every object, and the bookmark that ends them, with its version.
func (s *Server) initial(r *http.Request, at *place) (events []Object, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range s.items(r, at) {
		events = append(events, Object{"type": "ADDED", "object": object})
	}
	return append(events, Object{"type": "BOOKMARK", "object": Object{
		"kind": s.kindOf(at), "apiVersion": at.version,
		"metadata": Object{
			"resourceVersion": strconv.FormatUint(s.version, 10),
			"annotations":     Object{metav1.InitialEventsAnnotationKey: "true"},
		},
	}}), s.version
}

// watch sends the changes after a resource version, until the client or the server
// ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, at *place) {
	query := r.URL.Query()
	var first []Object
	from, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	switch begins := query.Get("sendInitialEvents"); {
	case begins != "" && !s.opts.WatchList:
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")
		return
	case begins == "true":
		first, from = s.initial(r, at)
	case err != nil:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "watches start at a resource version")
		return
	}
	name := nameSelected(r)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	encoder := json.NewEncoder(w)
	for _, event := range first {
		if encoder.Encode(event) != nil {
			return
		}
	}
	for next := 0; ; {
		w.(http.Flusher).Flush()
		var changes []change
		var changed chan struct{}
		changes, next, changed = s.since(next)
		for _, c := range changes {
			if c.version <= from || c.resource != at.key() || (at.namespace != "" && c.namespace != at.namespace) ||
				(name != "" && c.name != name) {
				continue
			}
			if encoder.Encode(Object{"type": c.kind, "object": c.object}) != nil {
				return
			}
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}

// since returns the changes from an index of the log on, the index after them, and a
// channel that is closed at the next change.
func (s *Server) since(next int) ([]change, int, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log[next:len(s.log):len(s.log)], len(s.log), s.changed
}
