package server

import (
	"context"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/clusterapi"
)

// pendingAttestor is an attestor that becomes ready later. Until then it returns an error for all evidence.
type pendingAttestor struct {
	pending[attest.Attestor]
	// kind is the name of the attestor.
	kind string
	// challenger is nil if machines are not challenged.
	challenger *pendingChallenger
	// registered is nil if Cluster API does not register machines.
	registered *clusterapi.Registry
}

// Name implements attest.Attestor.
func (l *pendingAttestor) Name() string { return l.kind }

// Attest implements attest.Attestor.
func (l *pendingAttestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	attestor, err := l.get()
	if err != nil {
		return nil, err
	}
	identity, err := attestor.Attest(ctx, req)
	if err != nil || l.registered == nil {
		return identity, err
	}
	if err := l.registered.Check(req, identity); err != nil {
		return nil, err
	}
	return identity, nil
}

// Gone implements attest.Presence. It returns false if the attestor does not implement
// attest.Presence.
func (l *pendingAttestor) Gone(ctx context.Context, instanceID, region string) (bool, error) {
	attestor, err := l.get()
	if err != nil {
		return false, err
	}
	if presence, ok := attestor.(attest.Presence); ok {
		return presence.Gone(ctx, instanceID, region)
	}
	return false, nil
}

// state is a readiness check: evidence can be checked.
func (l *pendingAttestor) state() (note string, err error) {
	_, err = l.get()
	return l.kind, err
}
