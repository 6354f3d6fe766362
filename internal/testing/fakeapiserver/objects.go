package fakeapiserver

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// place is the resource or object that a path names.
type place struct {
	// version is the API version, GROUP/VERSION.
	version, resource, namespace, name, subresource string
}

func (p *place) key() string {
	group, _, found := strings.Cut(p.version, "/")
	if !found {
		group = ""
	}
	return group + "/" + p.resource
}

func parsePath(path string) (*place, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	p := &place{}
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		p.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		p.version, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return nil, false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		p.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return nil, false
	}
	for i, to := range []*string{&p.resource, &p.name, &p.subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	return p, true
}

// one serves a request for one object.
func (s *Server) one(w http.ResponseWriter, r *http.Request, at *place) {
	sent, err := read(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.objects[at.key()][at.namespace+"/"+at.name]
	switch {
	case r.Method == http.MethodPost && at.name == "" && sent != nil:
		s.create(w, at, sent)
	case found == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", at.resource, at.name))
	case r.Method == http.MethodGet:
		reply(w, http.StatusOK, found)
	case r.Method == http.MethodPut && sent != nil:
		s.update(w, at, found, sent)
	case r.Method == http.MethodDelete:
		s.remove(w, at, found, sent)
	default:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, r.Method)
	}
}

// hasStatus lists the resources whose status is a subresource.
func hasStatus(resource string) bool {
	return slices.Contains([]string{"certificatesigningrequests", "nodeattestations", "nodes"}, resource) || hasGeneration(resource)
}

// hasGeneration lists the resources whose generation counts the changes of the spec.
func hasGeneration(resource string) bool {
	return resource == "nodescopes" || resource == "quarantines"
}

// countSpec sets the generation of an object that replaces another one.
func countSpec(at *place, was, is Object) {
	if !hasGeneration(at.resource) {
		return
	}
	generation, _ := part(was, "metadata")["generation"].(float64)
	if !reflect.DeepEqual(was["spec"], is["spec"]) {
		generation++
	}
	metadata(is)["generation"] = generation
}

func (s *Server) create(w http.ResponseWriter, at *place, sent Object) {
	meta := metadata(sent)
	if prefix, ok := meta["generateName"].(string); ok && meta["name"] == nil {
		meta["name"] = fmt.Sprintf("%s%05d", prefix, s.version)
	}
	at.name, _ = meta["name"].(string)
	if s.objects[at.key()][at.namespace+"/"+at.name] != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%s %q already exists", at.resource, at.name))
		return
	}
	if hasStatus(at.resource) {
		delete(sent, "status")
	}
	if at.resource == v1alpha1.Resource {
		sent["status"] = Object{"phase": string(v1alpha1.Issued)}
	}
	if sent["kind"] == nil {
		sent["kind"], sent["apiVersion"] = s.kindOf(at), at.version
	}
	reply(w, http.StatusCreated, s.add(at, sent))
}

// add stores a new object.
func (s *Server) add(at *place, object Object) Object {
	meta := metadata(object)
	if at.namespace != "" {
		meta["namespace"] = at.namespace
	}
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version+1)
	}
	if meta["generation"] == nil {
		meta["generation"] = 1.0
	}
	if meta["creationTimestamp"] == nil {
		meta["creationTimestamp"] = s.opts.Clock().UTC().Format(time.RFC3339)
	}
	return s.store(at, "ADDED", object)
}

// store writes an object with the next resource version and notifies watches.
func (s *Server) store(at *place, kind string, object Object) Object {
	s.version++
	metadata(object)["resourceVersion"] = strconv.FormatUint(s.version, 10)
	key, name := at.key(), at.namespace+"/"+at.name
	if s.objects[key] == nil {
		s.objects[key] = map[string]Object{}
	}
	if s.objects[key][name] = object; kind == "DELETED" {
		delete(s.objects[key], name)
	}
	s.log = append(s.log, change{key, at.namespace, at.name, kind, s.version, object})
	close(s.changed)
	s.changed = make(chan struct{})
	return object
}

func (s *Server) update(w http.ResponseWriter, at *place, found, sent Object) {
	was, is := part(found, "metadata"), metadata(sent)
	if v, ok := is["resourceVersion"].(string); ok && v != "" && v != was["resourceVersion"] {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("%s %q: the object has been modified", at.resource, at.name))
		return
	}
	if uid, ok := is["uid"].(string); ok && uid != "" && uid != was["uid"] {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf("%s %q: the UID is another", at.resource, at.name))
		return
	}
	next := merge(at, found, sent)
	if at.subresource == "approval" && decisions(found) != "" && decisions(found) != decisions(next) {
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "a decision may not be changed")
		return
	}
	if at.resource == v1alpha1.Resource {
		if problem := ledgerProblem(found, next); problem != "" {
			refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, problem)
			return
		}
	}
	if reflect.DeepEqual(next, found) {
		reply(w, http.StatusOK, found)
		return
	}
	reply(w, http.StatusOK, s.store(at, "MODIFIED", next))
}

// merge applies the part of the sent object that the subresource may change.
func merge(at *place, found, sent Object) Object {
	next := maps.Clone(found)
	switch at.subresource {
	case "status":
		next["status"] = sent["status"]
	case "approval":
		status := Object{}
		maps.Copy(status, part(found, "status"))
		status["conditions"] = part(sent, "status")["conditions"]
		next["status"] = status
	default:
		next = sent
		if hasStatus(at.resource) {
			if next["status"] = found["status"]; found["status"] == nil {
				delete(next, "status")
			}
		}
	}
	meta := maps.Clone(part(found, "metadata"))
	if at.subresource == "" {
		meta = maps.Clone(metadata(sent))
		for _, fixed := range []string{
			"uid", "creationTimestamp", "name", "namespace", "resourceVersion", "generation", "deletionTimestamp",
		} {
			if meta[fixed] = part(found, "metadata")[fixed]; meta[fixed] == nil {
				delete(meta, fixed)
			}
		}
	}
	next["metadata"] = meta
	countSpec(at, found, next)
	return next
}

// decisions lists the conditions that end a certificate request.
func decisions(csr Object) string {
	conditions, _ := part(csr, "status")["conditions"].([]any)
	var found []string
	for _, c := range conditions {
		if c, ok := c.(Object); ok && (c["type"] == "Approved" || c["type"] == "Denied") {
			found = append(found, fmt.Sprint(c["type"], c["reason"], c["message"]))
		}
	}
	return strings.Join(found, "\n")
}

func (s *Server) remove(w http.ResponseWriter, at *place, found, options Object) {
	meta := part(found, "metadata")
	if options != nil {
		for name, want := range part(options, "preconditions") {
			if meta[name] != want {
				refuse(w, http.StatusConflict, metav1.StatusReasonConflict,
					fmt.Sprintf("%s %q: the precondition on %s does not hold", at.resource, at.name, name))
				return
			}
		}
	}
	reply(w, http.StatusOK, s.delete(at))
}

// delete deletes an object and those that it owns.
func (s *Server) delete(at *place) Object {
	found := s.objects[at.key()][at.namespace+"/"+at.name]
	gone := maps.Clone(found)
	gone["metadata"] = maps.Clone(part(found, "metadata"))
	s.store(at, "DELETED", gone)
	for resource, objects := range s.objects {
		for name, object := range objects {
			if !owns(gone, object) {
				continue
			}
			owned := &place{version: fmt.Sprint(object["apiVersion"]), resource: resource[strings.Index(resource, "/")+1:]}
			owned.namespace, owned.name, _ = strings.Cut(name, "/")
			s.delete(owned)
		}
	}
	return gone
}

func owns(owner, object Object) bool {
	references, _ := part(object, "metadata")["ownerReferences"].([]any)
	return slices.ContainsFunc(references, func(reference any) bool {
		r, _ := reference.(Object)
		return r["uid"] == part(owner, "metadata")["uid"]
	})
}
