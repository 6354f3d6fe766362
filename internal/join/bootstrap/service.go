package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// Options configure a service. All but Quarantines, Limits and Clock are required; the configuration's validation checks them.
type Options struct {
	// Attestor checks evidence. If it is an [attest.Presence] too, the node name of a
	// terminated machine becomes free.
	Attestor attest.Attestor
	// Ledger writes the entries; Known caches them, and finds the owners of names.
	Ledger *ledger.Client
	Known  *ledger.Cache
	// Client reads nodes and the key of the service, and creates the Secrets of tokens.
	Client kubernetes.Interface
	// TokenTTL is the lifetime of a token.
	TokenTTL time.Duration
	// Reattestation says when a machine that used its token gets another one.
	Reattestation Policy
	// VerifyRegistration refuses names of nodes that exist.
	VerifyRegistration bool
	// Quarantines returns the Quarantines whose machines get no token; nil: none are followed.
	// While they cannot be found, requests fail.
	Quarantines Quarantines
	Limits      Limits
	// Timeout limits the time of a request, including its body.
	Timeout time.Duration
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
	// Observer is called after each request, if it is set.
	Observer Observer
}

// Service gives tokens to machines. It is safe for concurrent use.
type Service struct {
	options Options
	keys    *keyring
	limits  *limits
	locks   *machineLocks
}

// New returns a service.
func New(opts Options) *Service {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	key := func(ctx context.Context) ([]byte, error) { return ledger.ServiceKey(ctx, opts.Client) }
	return &Service{
		options: opts, keys: newKeyring(key, opts.Clock), limits: newLimits(opts.Limits), locks: newMachineLocks(),
	}
}

// ReadKey reads the key from which tokens are derived, or creates it. It does nothing if the
// key in the cache is new enough. Requests read the key themselves; ReadKey shows whether
// they can.
func (s *Service) ReadKey(ctx context.Context) error {
	_, err := s.keys.current(ctx)
	return err
}

// Join attests a machine and redeems its identity. The error is an [*attest.Refusal] if the
// machine may not join, an [*attest.Continue] if it has to show more, and any other error if that
// could not be decided. The identity is returned even with an error, if it is known.
func (s *Service) Join(ctx context.Context, req *attest.Request) (*Grant, *attest.Identity, error) {
	if _, err := requestedName(req.NodeName); err != nil {
		return nil, nil, err
	}
	id, err := s.options.Attestor.Attest(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	grant, err := s.redeemAlone(ctx, req, id)
	var refusal *attest.Refusal
	if errors.As(err, &refusal) {
		s.recordRefusal(ctx, req, id, refusal)
	}
	return grant, id, err
}

// redeemAlone redeems an identity while no other request to this process does so for the same
// machine.
func (s *Service) redeemAlone(ctx context.Context, req *attest.Request, id *attest.Identity) (*Grant, error) {
	name := v1alpha1.EntryName(id.Provider, id.InstanceID)
	unlock, err := s.locks.lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("wait for other requests of %s: %w", name, err)
	}
	defer unlock()
	return s.Redeem(ctx, req, id)
}
