package approver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/approve"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/ledger"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Options say for which cluster an approver works, and how. Client, Ledger and
// Known are required.
type Options struct {
	Client kubernetes.Interface
	Ledger *ledger.Client
	// Known follows the same ledger. Somebody else runs it, after New.
	Known *ledger.Cache

	// UnattestedNodes and ServingAddresses are the choices of package approve;
	// empty for the strict ones.
	UnattestedNodes  string
	ServingAddresses string

	// Identity names this approver among those that share the Lease. Without a
	// LeaseName there is no election: this approver always decides.
	Identity                  string
	LeaseNamespace, LeaseName string
	// How the Lease is kept, as leader election of client-go has it; zero means 15,
	// 10 and 2 seconds.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// MaxStaleness is how long the requests and the nodes may not have been heard from
	// while requests are decided; 0 for no limit. The ledger's cache has its own.
	MaxStaleness time.Duration

	// Workers is how many requests are decided at once; zero means 4.
	Workers  int
	Clock    func() time.Time
	Observer Observer
	Logger   logr.Logger
}

// Observer is told what an approver does. Its methods are called concurrently
// and must not wait.
type Observer interface {
	// Decided is called for each request that was approved or denied, once for
	// each node's request that was left to somebody else, and for each try that
	// failed.
	Decided(Event)
	// Leading is called when this approver begins and ceases to lead.
	Leading(bool)
	// TooOld is called for each try to decide a request that failed because what the
	// approver knows is too old.
	TooOld()
}

// Event is what became of one request.
type Event struct {
	// Request is the name of the CertificateSigningRequest.
	Request string
	Kind    approve.Kind
	// Outcome, Code and Message are the decision; they are zero if Err is set.
	Outcome approve.Outcome
	Code    verdict.Code
	Message string
	// Node is the node that it is for, as far as that is known.
	Node string
	// Waited is for how long the request has existed.
	Waited time.Duration
	// Err is why it could not be decided this time. It will be tried again.
	Err error
}

// Controller is an approver.
type Controller struct {
	opts     Options
	policy   approve.Options
	requests cache.SharedIndexInformer
	nodes    cache.SharedIndexInformer
	// The ages of what the informers have.
	requestsAge, nodesAge *staleness.Age

	// term is what is to be done while this approver leads; nil while it does not.
	term atomic.Pointer[term]
	// names are locks by node name: two machines with one name are looked at one
	// after the other.
	names [64]sync.Mutex
	// left has the requests that were left to somebody else, by UID.
	left sync.Map
	// listing knows which tokens and nodes no entry has.
	listing *listing
}

// New returns an approver that does nothing until it runs. It must be called
// before the ledger's cache runs.
func New(opts Options) (*Controller, error) {
	if opts.Client == nil || opts.Ledger == nil || opts.Known == nil {
		return nil, errors.New("an approver needs a client, the ledger and its cache")
	}
	c := &Controller{
		opts: withDefaults(opts),
		policy: approve.Options{
			Unattested: approve.Unattested(opts.UnattestedNodes), ServingAddresses: approve.ServingAddresses(opts.ServingAddresses),
		},
	}
	c.listing = newListing(opts.Ledger, c.opts.Clock)
	c.requestsAge = staleness.New("certificatesigningrequests.certificates.k8s.io", opts.MaxStaleness, opts.Clock)
	c.nodesAge = staleness.New("nodes", opts.MaxStaleness, opts.Clock)
	if err := c.follow(); err != nil {
		return nil, err
	}
	return c, nil
}

func withDefaults(opts Options) Options {
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{
		{&opts.LeaseDuration, 15 * time.Second},
		{&opts.RenewDeadline, 10 * time.Second},
		{&opts.RetryPeriod, 2 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	if opts.Workers == 0 {
		opts.Workers = 4
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Observer == nil {
		opts.Observer = silent{}
	}
	return opts
}

type silent struct{}

func (silent) Decided(Event) {}
func (silent) Leading(bool)  {}
func (silent) TooOld()       {}

// Run follows the cluster and takes part in the election until the context
// ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, informer := range []cache.SharedIndexInformer{c.requests, c.nodes} {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.requests.HasSynced, c.nodes.HasSynced, c.opts.Known.Synced) {
		return nil // it was told to end
	}
	if c.opts.LeaseName == "" {
		c.lead(ctx)
		return nil
	}
	return c.elect(ctx)
}

// named returns the lock of a node name.
func (c *Controller) named(node string) *sync.Mutex {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // a hash has no errors
	return &c.names[hash.Sum32()%uint32(len(c.names))]
}

// leaves reports whether it is news that a request is left to somebody else.
func (c *Controller) leaves(uid types.UID) bool {
	_, known := c.left.LoadOrStore(uid, true)
	return !known
}

// wrap says about which object something could not be done.
func wrap(err error, doing, kind, name string) error {
	return fmt.Errorf("%s %s %s: %w", doing, kind, name, err)
}
