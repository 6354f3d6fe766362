package protocol

import (
	"encoding/json"
	"hash/fnv"
)

// WriteState is what admission of nodes' writes looks at: objects in the JSON
// of the newest minor, and the API server's gates.
type WriteState struct {
	Gates                  map[string]bool   `json:"gates,omitempty"`
	Nodes                  []json.RawMessage `json:"nodes,omitempty"`
	Pods                   []json.RawMessage `json:"pods,omitempty"`
	ServiceAccounts        []json.RawMessage `json:"serviceAccounts,omitempty"`
	PersistentVolumeClaims []json.RawMessage `json:"persistentVolumeClaims,omitempty"`
	PersistentVolumes      []json.RawMessage `json:"persistentVolumes,omitempty"`
	CSIDrivers             []json.RawMessage `json:"csiDrivers,omitempty"`
	Roles                  []json.RawMessage `json:"roles,omitempty"`
	RoleBindings           []json.RawMessage `json:"roleBindings,omitempty"`
	ClusterRoles           []json.RawMessage `json:"clusterRoles,omitempty"`
	ClusterRoleBindings    []json.RawMessage `json:"clusterRoleBindings,omitempty"`
}

// Write is what admission is asked. The objects are JSON with their kind, in a
// version that the minor has.
type Write struct {
	User        string              `json:"user,omitempty"`
	UID         string              `json:"uid,omitempty"`
	Groups      []string            `json:"groups,omitempty"`
	Extra       map[string][]string `json:"extra,omitempty"`
	Operation   string              `json:"operation"`
	Group       string              `json:"group,omitempty"`
	Version     string              `json:"version,omitempty"`
	Resource    string              `json:"resource,omitempty"`
	Subresource string              `json:"subresource,omitempty"`
	Namespace   string              `json:"namespace,omitempty"`
	Name        string              `json:"name,omitempty"`
	Object      json.RawMessage     `json:"object,omitempty"`
	OldObject   json.RawMessage     `json:"oldObject,omitempty"`
	// Undefaulted objects are not given the defaults of the API.
	Undefaulted bool `json:"undefaulted,omitempty"`
}

// Admitted is the answer to a Write.
type Admitted struct {
	// Status is the HTTP status, 200 if the write is allowed.
	Status  int    `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Panicked is true if the plugin panicked.
	Panicked bool `json:"panicked,omitempty"`
	// Asked is what the plugin asked an authorizer, if it did.
	Asked *Access `json:"asked,omitempty"`
}

// Access is a question of admission to an authorizer.
type Access struct {
	User      string              `json:"user,omitempty"`
	UID       string              `json:"uid,omitempty"`
	Groups    []string            `json:"groups,omitempty"`
	Extra     map[string][]string `json:"extra,omitempty"`
	Verb      string              `json:"verb,omitempty"`
	Group     string              `json:"group,omitempty"`
	Version   string              `json:"version,omitempty"`
	Resource  string              `json:"resource,omitempty"`
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name,omitempty"`
}

// Fault is what is wrong with an authorizer about a question.
type Fault uint8

// The faults.
const (
	NoFault Fault = iota
	// Failing answers with an error and no decision.
	Failing
	// Stumbling answers with an error beside the decision, as an authorizer does
	// that cannot read one of many roles.
	Stumbling
)

// FaultOf returns the fault for a question. It depends on the question
// alone, so that every authorizer that is compared meets the same faults.
func FaultOf(resource, namespace, name string) Fault {
	h := fnv.New32a()
	for _, text := range []string{resource, namespace, name} {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	switch h.Sum32() % 8 {
	case 0:
		return Failing
	case 1:
		return Stumbling
	}
	return NoFault
}
