package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
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
