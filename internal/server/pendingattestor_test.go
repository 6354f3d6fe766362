package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/clusterapi"
)

// alwaysAttests is an attestor that attests every machine.
type alwaysAttests struct{}

func (alwaysAttests) Name() string { return "aws" }

func (alwaysAttests) Attest(context.Context, *attest.Request) (*attest.Identity, error) {
	return &attest.Identity{InstanceID: "i-1"}, nil
}

// withPresence also implements attest.Presence.
type withPresence struct{ alwaysAttests }

func (withPresence) Gone(context.Context, string, string) (bool, error) { return true, nil }

// attestsWith returns the same for every machine.
type attestsWith struct {
	alwaysAttests
	err error
}

func (a attestsWith) Attest(context.Context, *attest.Request) (*attest.Identity, error) {
	return &attest.Identity{}, a.err
}

// Cluster API is asked about machines whose evidence was accepted, and no others.
func TestClusterAPIIsAskedAfterTheEvidence(t *testing.T) {
	pending := &pendingAttestor{registered: clusterapi.New(clusterapi.Options{Namespaces: []string{"not-read"}})}
	for _, want := range []error{attest.Refuse("WrongAccount", ""), &attest.Continue{}, errors.New("the cloud does not answer")} {
		var made attest.Attestor = attestsWith{err: want}
		pending.made.Store(&made)
		if _, err := pending.Attest(t.Context(), &attest.Request{}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	var made attest.Attestor = attestsWith{}
	pending.made.Store(&made)
	identity, err := pending.Attest(t.Context(), &attest.Request{})
	if identity != nil || err == nil || !strings.Contains(err.Error(), "reading the machines of Cluster API") {
		t.Errorf("got %v, %v", identity, err)
	}
}

func TestAPendingAttestorReturnsErrors(t *testing.T) {
	pending := &pendingAttestor{kind: "aws"}
	pending.name = "the attestor aws"
	is := func(made attest.Attestor) { pending.made.Store(&made) }
	cause := errors.New("the metadata service does not answer")
	for _, trouble := range []error{nil, cause} {
		if trouble != nil {
			pending.trouble.Store(&trouble)
		}
		_, err := pending.Attest(t.Context(), &attest.Request{})
		if refusal := new(attest.Refusal); err == nil || errors.As(err, &refusal) || !errors.Is(err, trouble) && trouble != nil {
			t.Errorf("got %v, want an error that is not a refusal", err)
		}
		if gone, err := pending.Gone(t.Context(), "i-1", ""); gone || err == nil {
			t.Errorf("gone: got %v, %v", gone, err)
		}
		if _, err := pending.state(); err == nil || !strings.Contains(err.Error(), "waiting for the attestor aws: ") {
			t.Errorf("state: got %v", err)
		}
	}
	is(alwaysAttests{})
	if identity, err := pending.Attest(t.Context(), &attest.Request{}); err != nil || identity.InstanceID != "i-1" {
		t.Errorf("got %+v, %v", identity, err)
	}
	if gone, err := pending.Gone(t.Context(), "i-1", ""); gone || err != nil {
		t.Errorf("an attestor without presence: got %v, %v", gone, err)
	}
	is(withPresence{})
	if gone, err := pending.Gone(t.Context(), "i-1", ""); !gone || err != nil {
		t.Errorf("an attestor with presence: got %v, %v", gone, err)
	}
	if note, err := pending.state(); note != "aws" || err != nil {
		t.Errorf("state: got %q, %v", note, err)
	}
}
