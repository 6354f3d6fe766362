// Package protocol is how the conformance tests talk to an oracle: a small
// program that is linked with the in-tree Node authorizer of one Kubernetes
// minor. Each needs its own versions of the Kubernetes modules, so each is a
// process of its own.
//
// The tests write one Question per line to the oracle's standard input, as
// JSON, and read one Answer per line from its standard output. The package uses
// the standard library alone, so that it binds no minor to any version.
package protocol

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Question sets the state, if one is given, and then asks.
type Question struct {
	State    *State    `json:"state,omitempty"`
	Requests []Request `json:"requests,omitempty"`
	// Gates asks what the minor knows about these feature gates.
	Gates []string `json:"gates,omitempty"`
}

// State is the final state of a cluster and of its API server's gates. Pods and
// PersistentVolumes are objects of API group "" in the JSON of the newest
// minor; fields that a minor does not have are dropped on reading.
type State struct {
	Gates                  map[string]bool   `json:"gates,omitempty"`
	Pods                   []json.RawMessage `json:"pods,omitempty"`
	PersistentVolumes      []json.RawMessage `json:"persistentVolumes,omitempty"`
	VolumeAttachments      []Placed          `json:"volumeAttachments,omitempty"`
	ResourceSlices         []Placed          `json:"resourceSlices,omitempty"`
	PodCertificateRequests []Placed          `json:"podCertificateRequests,omitempty"`
}

// Placed is an object of which only the name and spec.nodeName count. Its API
// version differs from minor to minor.
type Placed struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
}

// Request is what an authorizer is asked. A Path makes it a non-resource
// request.
type Request struct {
	User          string        `json:"user,omitempty"`
	Groups        []string      `json:"groups,omitempty"`
	Verb          string        `json:"verb,omitempty"`
	Group         string        `json:"group,omitempty"`
	Resource      string        `json:"resource,omitempty"`
	Subresource   string        `json:"subresource,omitempty"`
	Namespace     string        `json:"namespace,omitempty"`
	Name          string        `json:"name,omitempty"`
	FieldSelector []Requirement `json:"fieldSelector,omitempty"`
	Path          string        `json:"path,omitempty"`
}

// Requirement is one requirement of a field selector. The API servers of 1.30
// do not show selectors to authorizers.
type Requirement struct {
	Field    string `json:"field"`
	Operator string `json:"operator"`
	Value    string `json:"value"`
}

// Decision is one byte of an Answer.
type Decision byte

// The decisions.
const (
	Allow     Decision = 'A'
	Deny      Decision = 'D'
	NoOpinion Decision = 'N'
	// Failed stands for an error of the authorizer.
	Failed Decision = 'E'
)

// Answer answers one Question.
type Answer struct {
	// Decisions has one Decision per request, in order.
	Decisions string          `json:"decisions,omitempty"`
	Gates     map[string]Gate `json:"gates,omitempty"`
	// Error says why the question could not be answered.
	Error string `json:"error,omitempty"`
}

// Gate is what a minor knows about a feature gate; gates that it does not have
// are left out of an Answer.
type Gate struct {
	Enabled bool `json:"enabled"`
	// Locked gates cannot be set to anything but their default.
	Locked bool `json:"locked"`
}

// Authorizer is an in-tree authorizer behind the protocol.
type Authorizer interface {
	// Load forgets the state before and takes a new one.
	Load(State) error
	// Decide answers one request.
	Decide(*Request) Decision
	// Gate describes a feature gate and reports whether the minor has it.
	Gate(name string) (Gate, bool)
}

// Serve answers the questions on r until it ends.
func Serve(r io.Reader, w io.Writer, a Authorizer) error {
	in, out := json.NewDecoder(bufio.NewReaderSize(r, 1<<20)), bufio.NewWriterSize(w, 1<<20)
	for {
		var q Question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a question: %w", err)
		}
		if err := json.NewEncoder(out).Encode(answer(&q, a)); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
}

func answer(q *Question, a Authorizer) Answer {
	if q.State != nil {
		if err := a.Load(*q.State); err != nil {
			return Answer{Error: err.Error()}
		}
	}
	decisions := make([]byte, len(q.Requests))
	for i := range q.Requests {
		decisions[i] = byte(a.Decide(&q.Requests[i]))
	}
	answer := Answer{Decisions: string(decisions), Gates: make(map[string]Gate)}
	for _, name := range q.Gates {
		if gate, ok := a.Gate(name); ok {
			answer.Gates[name] = gate
		}
	}
	return answer
}
