package ledgertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

type kind struct{ apiVersion, name string }

// kinds are those of the resources that the server has.
var kinds = map[string]kind{
	v1alpha1.Resource:            {v1alpha1.Group + "/" + v1alpha1.Version, v1alpha1.Kind},
	"secrets":                    {"v1", "Secret"},
	"nodes":                      {"v1", "Node"},
	"certificatesigningrequests": {"certificates.k8s.io/v1", "CertificateSigningRequest"},
}

func (s *Server) create(k key, sent object) *http.Response {
	metadata := sent.metadata()
	k.name, _ = metadata["name"].(string)
	if _, exists := s.objects[k]; exists {
		return failure(http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%s %q already exists", k.resource, k.name))
	}
	metadata["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version+1)
	metadata["creationTimestamp"] = s.clock().UTC().Format(time.RFC3339)
	metadata["generation"] = 1
	if k.resource == v1alpha1.Resource {
		sent["status"] = map[string]any{"phase": string(v1alpha1.Issued)}
	}
	s.put(k, sent, "ADDED")
	return answer(http.StatusCreated, s.objects[k])
}

func (s *Server) update(k key, subresource string, sent object) *http.Response {
	old, exists := s.objects[k]
	if !exists {
		return notFound(k)
	}
	metadata, was := sent.metadata(), old.metadata()
	if version, ok := metadata["resourceVersion"].(string); ok && version != "" && version != was["resourceVersion"] {
		return failure(http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("%s %q: the object has been modified; please apply your changes to the latest version and try again", k.resource, k.name))
	}
	for _, name := range []string{"uid", "creationTimestamp", "generation", "deletionTimestamp"} {
		metadata[name] = was[name]
	}
	switch {
	case subresource == "status":
		status := sent["status"]
		sent = old.copied()
		sent["status"] = status
	case subresource == "" && k.resource == v1alpha1.Resource:
		sent["status"] = old["status"]
	}
	if k.resource == v1alpha1.Resource && old.phase() == v1alpha1.Revoked && (sent.phase() != v1alpha1.Revoked || !equal(sent["spec"], old["spec"])) {
		return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "a machine that is revoked stays revoked")
	}
	if k.resource == v1alpha1.Resource && !mayBind(old, sent) {
		return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "a token that was used for a key is good for no other")
	}
	s.put(k, sent, "MODIFIED")
	return answer(http.StatusOK, s.objects[k])
}

// mayBind is what the schema says of bindings: one stays, until the next token is used.
func mayBind(old, sent object) bool {
	was, is := old.binding(), sent.binding()
	if equal(was, is) || is == nil && sent.phase() == v1alpha1.Revoked {
		return true
	}
	spec, _ := sent["spec"].(map[string]any)
	return is != nil && is["tokenID"] == spec["tokenID"] && (was == nil || was["tokenID"] != is["tokenID"])
}

func (s *Server) delete(k key, sent object) *http.Response {
	old, exists := s.objects[k]
	if !exists {
		return notFound(k)
	}
	preconditions, _ := sent["preconditions"].(map[string]any)
	for name, want := range preconditions {
		if old.metadata()[name] != want {
			return failure(http.StatusConflict, metav1.StatusReasonConflict, "the precondition "+name+" does not hold")
		}
	}
	s.remove(k)
	return answer(http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

// remove deletes an object, and those that it owns.
func (s *Server) remove(k key) {
	old := s.objects[k]
	delete(s.objects, k)
	s.record(k, old, "DELETED")
	for other, o := range s.objects {
		for _, owner := range o.owners() {
			if owner["uid"] == old.metadata()["uid"] {
				s.remove(other)
			}
		}
	}
}

func (s *Server) put(k key, o object, what string) {
	o["apiVersion"], o["kind"] = kinds[k.resource].apiVersion, kinds[k.resource].name
	o = o.copied()
	s.objects[k] = o
	s.record(k, o, what)
}

// record counts the version up, and has it in the object too.
func (s *Server) record(k key, o object, what string) {
	s.version++
	o.metadata()["resourceVersion"] = strconv.Itoa(s.version)
	document, err := json.Marshal(map[string]any{"type": what, "object": o})
	if err != nil {
		panic(err) // it came as JSON
	}
	s.events = append(s.events, event{s.version, k.resource, what, document})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (o object) metadata() map[string]any {
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		o["metadata"] = metadata
	}
	return metadata
}

func (o object) owners() []map[string]any {
	list, _ := o.metadata()["ownerReferences"].([]any)
	var owners []map[string]any
	for _, owner := range list {
		if owner, ok := owner.(map[string]any); ok {
			owners = append(owners, owner)
		}
	}
	return owners
}

func (o object) phase() v1alpha1.Phase {
	status, _ := o["status"].(map[string]any)
	phase, _ := status["phase"].(string)
	return v1alpha1.Phase(phase)
}

func (o object) binding() map[string]any {
	status, _ := o["status"].(map[string]any)
	binding, _ := status["binding"].(map[string]any)
	return binding
}

func (o object) copied() object {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // it came as JSON
	}
	var out object
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
