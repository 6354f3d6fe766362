package fakeapiserver

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Put stores an object unchanged, with its status, without a fault. It replaces an
// existing one regardless of its resource version. The path is the path of the object,
// such as "/api/v1/nodes/worker-1".
func (s *Server) Put(path string, object any) error {
	at, ok := parsePath(path)
	if !ok || at.name == "" {
		return fmt.Errorf("%s is not the path of an object", path)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var put Object
	if err := json.Unmarshal(text, &put); err != nil {
		return err
	}
	if put["kind"] == nil {
		put["kind"], put["apiVersion"] = s.kindOf(at), at.version
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	meta := metadata(put)
	meta["name"] = at.name
	found := s.objects[at.key()][at.namespace+"/"+at.name]
	if found == nil {
		s.add(at, put)
		return nil
	}
	for _, fixed := range []string{"uid", "creationTimestamp", "namespace"} {
		if was := part(found, "metadata")[fixed]; was != nil {
			meta[fixed] = was
		}
	}
	countSpec(at, found, put)
	s.store(at, "MODIFIED", put)
	return nil
}

// Get reads an object without a fault.
func (s *Server) Get(path string, into any) (found bool, err error) {
	at, ok := parsePath(path)
	if !ok {
		return false, fmt.Errorf("%s is not the path of an object", path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	object := s.objects[at.key()][at.namespace+"/"+at.name]
	if object == nil {
		return false, nil
	}
	return true, convert(object, into)
}

// Remove deletes an object without a fault, if it exists.
func (s *Server) Remove(path string) {
	at, ok := parsePath(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ok || s.objects[at.key()][at.namespace+"/"+at.name] == nil {
		return
	}
	s.delete(at)
}

// History returns every version that an object has had, the oldest first. A
// version in which it was deleted has a deletion timestamp.
func (s *Server) History(path string) ([]Object, error) {
	at, ok := parsePath(path)
	if !ok {
		return nil, fmt.Errorf("%s is not the path of an object", path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var versions []Object
	for _, c := range s.log {
		if c.resource != at.key() || c.namespace != at.namespace || c.name != at.name {
			continue
		}
		object := maps.Clone(c.object)
		if c.kind == "DELETED" {
			meta := maps.Clone(part(object, "metadata"))
			meta["deletionTimestamp"] = metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
			object["metadata"] = meta
		}
		versions = append(versions, object)
	}
	return versions, nil
}

func convert(from Object, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
