package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// Options configure a service.
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
	// Reattestation says when a machine that used its token gets another one; empty:
	// [Never].
	Reattestation Policy
	// VerifyRegistration refuses names of nodes that exist.
	VerifyRegistration bool
	// Quarantines returns the Quarantines whose machines get no token; nil: none are followed.
	// While they cannot be found, requests fail.
	Quarantines Quarantines
	Limits      Limits
	// Timeout limits the time of a request, including its body; 0: 15 seconds.
	Timeout time.Duration
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
	// Observer is called after each request; may be nil.
	Observer Observer
}

// Service gives tokens to machines. It is safe for concurrent use.
type Service struct {
	attestor attest.Attestor
	ledger   *ledger.Client
	known    *ledger.Cache
	client   kubernetes.Interface
	keys     *keyring
	ttl      time.Duration
	policy   Policy
	// verifyRegistration is Options.VerifyRegistration.
	verifyRegistration bool
	quarantines        Quarantines
	limits             *limits
	locks              *machineLocks
	timeout            time.Duration
	now                func() time.Time
	observer           Observer
}

const (
	defaultTimeout = 15 * time.Second
	// shortestTTL leaves a kubelet time to start.
	shortestTTL = 10 * time.Second
)

// New returns a service, or an error that says what is wrong with the options.
func New(opts Options) (*Service, error) {
	var lacking []error
	if opts.Attestor == nil || opts.Ledger == nil || opts.Known == nil || opts.Client == nil {
		lacking = append(lacking, errors.New("the attestor, the ledger, its cache or the client of the cluster is missing"))
	}
	if opts.TokenTTL < shortestTTL {
		lacking = append(lacking, fmt.Errorf("a token lifetime of %s: want at least %s", opts.TokenTTL, shortestTTL))
	}
	opts.Reattestation = cmp.Or(opts.Reattestation, Never)
	if !opts.Reattestation.known() {
		lacking = append(lacking, fmt.Errorf("policy %q for attesting again: want one of %v", opts.Reattestation, Policies()))
	}
	if err := opts.Limits.check(); err != nil {
		lacking = append(lacking, err)
	}
	if err := errors.Join(lacking...); err != nil {
		return nil, fmt.Errorf("set up the bootstrap service: %w", err)
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Observer == nil {
		opts.Observer = noObserver{}
	}
	key := func(ctx context.Context) ([]byte, error) { return ledger.ServiceKey(ctx, opts.Client) }
	return &Service{
		attestor: opts.Attestor, ledger: opts.Ledger, known: opts.Known, client: opts.Client,
		keys: newKeyring(key, opts.Clock), ttl: opts.TokenTTL, policy: opts.Reattestation,
		verifyRegistration: opts.VerifyRegistration, quarantines: opts.Quarantines,
		limits: newLimits(opts.Limits), locks: newMachineLocks(),
		timeout: cmp.Or(opts.Timeout, defaultTimeout), now: opts.Clock, observer: opts.Observer,
	}, nil
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
	id, err := s.attestor.Attest(ctx, req)
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
