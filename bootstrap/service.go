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
	"github.com/node-authorizer/node-authorizer/ledger"
)

// Options are what a service needs and how it decides.
type Options struct {
	// Attestor checks evidence. If it is an [attest.Presence] too, a machine that
	// has ended gives its node name free.
	Attestor attest.Attestor
	// Ledger writes the entries; Known follows them, and knows who has which name.
	Ledger *ledger.Client
	Known  *ledger.Cache
	// Client reads nodes and the key of the service, and creates the Secrets of tokens.
	Client kubernetes.Interface
	// TokenTTL is how long a token is good for.
	TokenTTL time.Duration
	// Reattestation says when a machine that used its token gets another; empty:
	// [Never].
	Reattestation Policy
	// VerifyRegistration refuses names of nodes that exist.
	VerifyRegistration bool
	Limits             Limits
	// Timeout is how long a request may take, its body included; 0: 15 seconds.
	Timeout time.Duration
	// Clock is what the time is; nil: time.Now.
	Clock func() time.Time
	// Observer is told what became of each request; nil: nobody.
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

// New returns a service, or says what the options lack.
func New(opts Options) (*Service, error) {
	var lacking []error
	if opts.Attestor == nil || opts.Ledger == nil || opts.Known == nil || opts.Client == nil {
		lacking = append(lacking, errors.New("the attestor, the ledger, its cache or the client of the cluster is missing"))
	}
	if opts.TokenTTL < shortestTTL {
		lacking = append(lacking, fmt.Errorf("tokens that are good for %s: want at least %s", opts.TokenTTL, shortestTTL))
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
		opts.Observer = nobody{}
	}
	key := func(ctx context.Context) ([]byte, error) { return ledger.ServiceKey(ctx, opts.Client) }
	return &Service{
		attestor: opts.Attestor, ledger: opts.Ledger, known: opts.Known, client: opts.Client,
		keys: newKeyring(key, opts.Clock), ttl: opts.TokenTTL, policy: opts.Reattestation, verifyRegistration: opts.VerifyRegistration,
		limits: newLimits(opts.Limits), locks: newMachineLocks(), timeout: cmp.Or(opts.Timeout, defaultTimeout), now: opts.Clock, observer: opts.Observer,
	}, nil
}

// ReadKey reads the key from which tokens are derived, or makes it, unless that was done
// a moment ago. Requests do so themselves; it shows whether they can.
func (s *Service) ReadKey(ctx context.Context) error {
	_, err := s.keys.current(ctx)
	return err
}

// Join attests a machine and redeems its identity. The error is an
// [*attest.Refusal] if the machine may not join, and any other error if that
// could not be found out. The identity is returned as far as it was found.
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
		s.note(ctx, req, id, refusal)
	}
	return grant, id, err
}

// redeemAlone redeems an identity while no other request of this process does the
// same for the machine.
func (s *Service) redeemAlone(ctx context.Context, req *attest.Request, id *attest.Identity) (*Grant, error) {
	name := v1alpha1.EntryName(id.Provider, id.InstanceID)
	unlock, err := s.locks.lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("wait for other requests of %s: %w", name, err)
	}
	defer unlock()
	return s.Redeem(ctx, req, id)
}
