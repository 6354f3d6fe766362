package controller

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/informer"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Options configure an approver. Client, Ledger and Known are required.
type Options struct {
	Client kubernetes.Interface
	Ledger *ledger.Client
	// Known caches the same ledger. The caller runs it, after New.
	Known *ledger.Cache

	// Quarantines returns the Quarantines whose nodes and credentials get no certificates; nil: none
	// are followed. While they cannot be found, no request that needs facts is decided.
	Quarantines Quarantines

	// UnattestedNodes and ServingAddresses are the options of package approve; empty
	// means the strict ones.
	UnattestedNodes  string
	ServingAddresses string
	// ServingSources vouch for serving certificates of nodes that the ledger does not have.
	ServingSources []approve.Source
	// Machines returns the approved Machines of a node, for ServingSources with Machine.
	Machines func(node string) ([]*v1alpha1.Machine, error)
	// Resolver resolves DNS names for ServingSources; nil means the resolver of the host.
	Resolver Resolver

	// Identity identifies this approver among the approvers that share the Lease of LeaderElection. Without a
	// name of the Lease there is no election: this approver is always active.
	Identity       string
	LeaderElection configv1alpha1.LeaderElection

	// MaxStaleness is the age at which the copies of requests and nodes are too old to
	// decide requests; 0 means no limit. The ledger's cache has its own limit.
	MaxStaleness time.Duration

	// Workers is how many requests are decided concurrently; zero means 4.
	Workers  int
	Clock    func() time.Time
	Observer Observer
	Logger   logr.Logger
}

// Observer receives the events of an approver. Its methods are called concurrently and must
// not block.
type Observer interface {
	// Decided is called for each request that was approved or denied, once for each node's
	// request that was left to others, and for each failed try.
	Decided(Event)
	// Leading is called when this approver starts and stops leading.
	Leading(bool)
	// TooOld is called for each failed try to decide a request because a copy is too old.
	TooOld()
}

// Event is the result of one request.
type Event struct {
	// Request is the name of the CertificateSigningRequest.
	Request string
	Kind    approve.Kind
	// Outcome, Code and Message are the decision; they are zero if Err is set.
	Outcome approve.Outcome
	Code    verdict.Code
	Message string
	// Node is the node that the request is for, if it is known.
	Node string
	// Waited is the age of the request.
	Waited time.Duration
	// Err is why the request could not be decided. It will be retried.
	Err error
}

// Controller is an approver.
type Controller struct {
	opts     Options
	policy   approve.Options
	requests *informer.Informer
	nodes    *informer.Informer

	// term holds the queues while this approver leads; nil otherwise.
	term atomic.Pointer[term]
	// nameLocks are locks by node name: two machines with one name are decided one after
	// the other.
	nameLocks [64]sync.Mutex
	// left holds the UIDs of requests that were left to others.
	left sync.Map
	// listing lists the ledger while this approver leads, to confirm that no entry has a token or node.
	listing *listing
	// resolving holds an element for each worker that waits for DNS.
	resolving chan struct{}
}

// New returns an approver that is inactive until Run is called. New must be called before the
// ledger's cache runs.
func New(opts Options) (*Controller, error) {
	if opts.Client == nil || opts.Ledger == nil || opts.Known == nil {
		return nil, errors.New("an approver needs a client, the ledger and its cache")
	}
	c := &Controller{
		opts: withDefaults(opts),
		policy: approve.Options{
			Unattested:       approve.Unattested(opts.UnattestedNodes),
			ServingAddresses: approve.ServingAddresses(opts.ServingAddresses),
			Sources:          opts.ServingSources,
		},
	}
	c.resolving = make(chan struct{}, max(1, c.opts.Workers/2))
	c.listing = newListing(opts.Ledger, c.opts.Clock, c.addRequest)
	c.newInformers(opts.MaxStaleness, opts.Clock)
	return c, nil
}

func withDefaults(opts Options) Options {
	if opts.Workers == 0 {
		opts.Workers = 4
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Resolver == nil {
		opts.Resolver = &net.Resolver{PreferGo: true}
	}
	if opts.Observer == nil {
		opts.Observer = noObserver{}
	}
	return opts
}

type noObserver struct{}

func (noObserver) Decided(Event) {}
func (noObserver) Leading(bool)  {}
func (noObserver) TooOld()       {}

// Run runs the informers and takes part in the election until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { c.requests.Run(ctx) })
	running.Go(func() { c.nodes.Run(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.requests.HasSynced, c.nodes.HasSynced, c.opts.Known.Synced) {
		return nil // the context ended
	}
	if c.opts.LeaderElection.Name == "" {
		c.lead(ctx)
		return nil
	}
	return c.elect(ctx)
}

// nameLock returns the lock of a node name.
func (c *Controller) nameLock(node string) *sync.Mutex {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // a hash has no errors
	return &c.nameLocks[hash.Sum32()%uint32(len(c.nameLocks))]
}

// firstLeave reports whether a request is left to others for the first time.
func (c *Controller) firstLeave(uid types.UID) bool {
	_, known := c.left.LoadOrStore(uid, true)
	return !known
}

// wrap adds the action and the object to an error.
func wrap(err error, doing, kind, name string) error {
	return fmt.Errorf("%s %s %s: %w", doing, kind, name, err)
}
