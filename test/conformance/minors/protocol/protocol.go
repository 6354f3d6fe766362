// Package protocol is how the conformance tests talk to an oracle: a small
// program that is linked with the in-tree Node authorizer and NodeRestriction of
// one Kubernetes minor. Each needs its own versions of the Kubernetes modules, so each is a
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

// Question sets the states that are given, and then asks.
type Question struct {
	State      *State      `json:"state,omitempty"`
	Requests   []Request   `json:"requests,omitempty"`
	WriteState *WriteState `json:"writeState,omitempty"`
	Writes     []Write     `json:"writes,omitempty"`
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
	Decisions string `json:"decisions,omitempty"`
	// Admitted has one answer per write, in order.
	Admitted []Admitted      `json:"admitted,omitempty"`
	Gates    map[string]Gate `json:"gates,omitempty"`
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

// Oracle is one minor behind the protocol.
type Oracle interface {
	Authorizer
	Restriction
}

// Restriction is an in-tree NodeRestriction.
type Restriction interface {
	// LoadWrites forgets the state before and takes a new one.
	LoadWrites(WriteState) error
	// Admit answers one write.
	Admit(*Write) (Admitted, error)
}

// Authorizer is an in-tree authorizer.
type Authorizer interface {
	// Load forgets the state before and takes a new one.
	Load(State) error
	// Decide answers one request.
	Decide(*Request) Decision
	// Gate describes a feature gate and reports whether the minor has it.
	Gate(name string) (Gate, bool)
}

// Serve answers the questions on r until it ends.
func Serve(r io.Reader, w io.Writer, o Oracle) error {
	in, out := json.NewDecoder(bufio.NewReaderSize(r, 1<<20)), bufio.NewWriterSize(w, 1<<20)
	for {
		var q Question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a question: %w", err)
		}
		if err := json.NewEncoder(out).Encode(answer(&q, o)); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
}

func answer(q *Question, o Oracle) Answer {
	if err := load(q, o); err != nil {
		return Answer{Error: err.Error()}
	}
	decisions := make([]byte, len(q.Requests))
	for i := range q.Requests {
		decisions[i] = byte(o.Decide(&q.Requests[i]))
	}
	answer := Answer{Decisions: string(decisions), Gates: make(map[string]Gate)}
	for i := range q.Writes {
		admitted, err := o.Admit(&q.Writes[i])
		if err != nil {
			return Answer{Error: fmt.Sprintf("write %d: %v", i, err)}
		}
		answer.Admitted = append(answer.Admitted, admitted)
	}
	for _, name := range q.Gates {
		if gate, ok := o.Gate(name); ok {
			answer.Gates[name] = gate
		}
	}
	return answer
}

func load(q *Question, o Oracle) error {
	if q.State != nil {
		if err := o.Load(*q.State); err != nil {
			return err
		}
	}
	if q.WriteState != nil {
		return o.LoadWrites(*q.WriteState)
	}
	return nil
}
