package fakeapiserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// list serves a list, page by page if the client asks for it.
func (s *Server) list(w http.ResponseWriter, r *http.Request, at *place) {
	selector, err := selectorOf(r, at)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if r.URL.Query().Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact) {
		s.listExact(w, r, at)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	meta := Object{"resourceVersion": strconv.FormatUint(s.version, 10)}
	keys := s.keys(at, selector)
	if after := r.URL.Query().Get("continue"); after != "" {
		keys = slices.DeleteFunc(keys, func(key string) bool { return key <= after })
	}
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 && limit < len(keys) {
		meta["remainingItemCount"] = len(keys) - limit
		keys = keys[:limit]
		meta["continue"] = keys[limit-1]
	}
	items := make([]Object, len(keys))
	for i, key := range keys {
		items[i] = s.objects[at.key()][key]
	}
	list := Object{"kind": s.kindOf(at) + "List", "apiVersion": at.version, "metadata": meta, "items": items}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		for i, item := range items {
			items[i] = Object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}
		}
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	reply(w, http.StatusOK, list)
}

// items returns the requested objects. The lock is held.
func (s *Server) items(r *http.Request, at *place) []Object {
	selector, err := selectorOf(r, at)
	if err != nil {
		return nil
	}
	items := []Object{}
	for _, key := range s.keys(at, selector) {
		items = append(items, s.objects[at.key()][key])
	}
	return items
}

// keys returns the keys of the selected objects, sorted. The lock is held.
func (s *Server) keys(at *place, selector fields.Selector) []string {
	all := s.objects[at.key()]
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool {
		namespace, name, _ := strings.Cut(key, "/")
		if at.namespace != "" && at.namespace != namespace {
			return true
		}
		node, _ := part(all[key], "spec")["nodeName"].(string)
		signer, _ := part(all[key], "spec")["signerName"].(string)
		return !selector.Matches(fields.Set{
			"metadata.name": name, "metadata.namespace": namespace, "spec.nodeName": node, "spec.signerName": signer,
		})
	})
}

// selectorOf returns the field selector of a list or watch. Like an API server, it returns an
// error for fields that the resource does not support.
func selectorOf(r *http.Request, at *place) (fields.Selector, error) {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	for _, required := range selector.Requirements() {
		onNode := required.Field == "spec.nodeName" &&
			slices.Contains([]string{"pods", "resourceslices", "podcertificaterequests"}, at.resource)
		ofSigner := required.Field == "spec.signerName" && at.resource == "certificatesigningrequests"
		if required.Field != "metadata.name" && required.Field != "metadata.namespace" && !onNode && !ofSigner {
			return nil, fmt.Errorf("field label not supported: %s", required.Field)
		}
	}
	return selector, nil
}

// nameSelected returns the name in the field selector of a watch, the only field that watches
// support; empty for all names.
func nameSelected(r *http.Request) string {
	name, _ := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	return name
}
