package ledgertest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

// watch streams what changes after a version, or first, if asked to, everything
// that there is.
func (s *Server) watch(r *http.Request, call Call) (*http.Response, error) {
	query := r.URL.Query()
	s.mu.Lock()
	from, err := strconv.Atoi(query.Get("resourceVersion"))
	if err != nil {
		from = 0
	}
	var first [][]byte
	if query.Get("sendInitialEvents") == "true" {
		from = s.version
		first = s.initial(call.Resource)
	}
	s.mu.Unlock()
	reader, writer := io.Pipe()
	go func() {
		<-r.Context().Done()
		_ = writer.CloseWithError(r.Context().Err())
	}()
	go func() {
		for _, document := range first {
			if _, err := writer.Write(document); err != nil {
				return
			}
		}
		s.follow(r, call.Resource, from, writer)
	}()
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: reader, ContentLength: -1,
	}, nil
}

// initial is everything that there is, and the mark that ends it.
func (s *Server) initial(resource string) [][]byte {
	var documents [][]byte
	add := func(what string, o any) {
		document, err := json.Marshal(map[string]any{"type": what, "object": o})
		if err != nil {
			panic(err) // it came as JSON
		}
		documents = append(documents, document)
	}
	for _, k := range s.keys(resource) {
		add("ADDED", s.objects[k])
	}
	add("BOOKMARK", object{
		"apiVersion": kinds[resource].apiVersion, "kind": kinds[resource].name,
		"metadata": object{"resourceVersion": strconv.Itoa(s.version), "annotations": object{"k8s.io/initial-events-end": "true"}},
	})
	return documents
}

func (s *Server) follow(r *http.Request, resource string, from int, writer io.Writer) {
	for {
		s.mu.Lock()
		changed := s.changed
		var news [][]byte
		for _, e := range s.events {
			if e.version > from && e.resource == resource {
				news = append(news, e.document)
			}
		}
		from = s.version
		s.mu.Unlock()
		for _, document := range news {
			if _, err := writer.Write(document); err != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
