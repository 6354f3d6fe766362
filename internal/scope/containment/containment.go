package containment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/objectevents"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// Options are the settings of [Live].
type Options struct {
	// Cluster is the API server. Only the API server limits requests.
	Cluster *rest.Config
	// NodeScopes and Quarantines are what is followed.
	NodeScopes, Quarantines bool
	// MaxQuarantinedNodes returns how many nodes may be quarantined at once; false if that is not
	// known yet. One node always may be. Nil means that there is no limit.
	MaxQuarantinedNodes func() (limit int, known bool)
	// Aggregation returns which versions of API groups other API servers serve, for the warnings about NodeScopes; nil if
	// that is not known yet. The same pointer is the same answer. Nil means that it is never known.
	Aggregation func() *nodescope.Aggregation
	// Record records how many nodes are quarantined in the ConfigMap kube-system/node-authorizer-quarantined-nodes,
	// so that as many stay quarantined when the limit falls. Without it, a lower limit ends quarantines.
	Record bool
	// MaxStaleness is the maximum age of the copy that decisions use; 0 means no limit.
	MaxStaleness time.Duration
	// Observer is optional.
	Observer Observer
	// Interval is the interval between checks of the clock and the limit; 0 means one second.
	Interval time.Duration
	// Now is optional.
	Now func() time.Time
}

// Live has what is enforced. It is safe for concurrent use.
type Live struct {
	opts        Options
	rest        rest.Interface
	parameters  runtime.ParameterCodec
	events      *objectevents.Recorder
	scopes      *scopes
	quarantines *quarantines
	// ofScopes and ofQuarantines are nil for what is not followed.
	ofScopes, ofQuarantines *follower
}

// New returns a Live that follows the resources when Run is called.
func New(opts Options) (*Live, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Observer == nil {
		opts.Observer = unobserved{}
	}
	if opts.Interval == 0 {
		opts.Interval = defaultInterval
	}
	if opts.MaxQuarantinedNodes == nil {
		opts.MaxQuarantinedNodes = func() (int, bool) { return maxObjects, true }
	}
	l := &Live{opts: opts, scopes: newScopes(opts.Aggregation)}
	config := rest.CopyConfig(opts.Cluster)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	if l.rest, l.parameters, err = newREST(config); err != nil {
		return nil, err
	}
	var kept *record
	if opts.Record {
		kept = &record{client: client, report: reportOnce(opts.Observer.ContainmentUnrecorded)}
	}
	l.quarantines = newQuarantines(opts.MaxQuarantinedNodes, kept)
	l.events = objectevents.New(client, opts.Now, opts.Observer.ContainmentWriteFailed)
	if opts.NodeScopes {
		l.ofScopes = l.newFollower(v1alpha1.NodeScopeResource, v1alpha1.NodeScopeKind, l.scopes)
	}
	if opts.Quarantines {
		l.ofQuarantines = l.newFollower(v1alpha1.QuarantineResource, v1alpha1.QuarantineKind, l.quarantines)
	}
	return l, nil
}

// Run follows the resources until the context ends. It must be called only once.
func (l *Live) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { l.events.Run(ctx) })
	for _, f := range l.followers() {
		running.Go(func() { f.run(ctx) })
	}
}

func (l *Live) followers() (all []*follower) {
	for _, f := range []*follower{l.ofScopes, l.ofQuarantines} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

// Policy returns the pointer to the NodeScopes that are enforced. It is never nil, and its value
// must not be used while [Live.NodeScopesFresh] returns an error.
func (l *Live) Policy() *atomic.Pointer[nodescope.Policy] { return l.scopes.policy }

// Quarantines returns the pointer to the quarantines that are enforced. It is never nil, and its
// value must not be used while [Live.QuarantinesFresh] returns an error.
func (l *Live) Quarantines() *atomic.Pointer[quarantine.Set] { return l.quarantines.set }

// NodeScopesFresh returns an error if the policy must not be used for decisions: NodeScopes have
// not been read, or their copy is too old.
func (l *Live) NodeScopesFresh() error {
	if l.ofScopes == nil {
		return nil
	}
	return l.ofScopes.fresh()
}

// QuarantinesFresh returns an error if the quarantines must not be used for decisions. It is also
// one if the limit decides about them and is not known.
func (l *Live) QuarantinesFresh() error {
	if l.ofQuarantines == nil {
		return nil
	}
	err := l.ofQuarantines.fresh()
	if err == nil && l.quarantines.undecided.Load() {
		err = errLimitUnknown
	}
	return err
}

var errLimitUnknown = errors.New("the limit of quarantined nodes is not known yet: the nodes have not been counted, or ConfigMap " +
	RecordNamespace + "/" + RecordName + " has not been read")

// Fresh joins the errors of NodeScopesFresh and QuarantinesFresh.
func (l *Live) Fresh() error { return errors.Join(l.NodeScopesFresh(), l.QuarantinesFresh()) }

// Quarantined reports whether a node is quarantined now, and by which Quarantine. The error means
// that this is not known.
func (l *Live) Quarantined(node string) (name string, found bool, err error) {
	return l.find(func(set *quarantine.Set, now time.Time) (*v1alpha1.Quarantine, bool) { return set.Node(node, now) })
}

// QuarantinedCredential reports the same of a credential, by its id.
func (l *Live) QuarantinedCredential(id string) (name string, found bool, err error) {
	return l.find(func(set *quarantine.Set, now time.Time) (*v1alpha1.Quarantine, bool) { return set.Credential(id, now) })
}

func (l *Live) find(in func(*quarantine.Set, time.Time) (*v1alpha1.Quarantine, bool)) (name string, found bool, err error) {
	if l.ofQuarantines == nil {
		return "", false, nil
	}
	if err := l.QuarantinesFresh(); err != nil {
		return "", false, fmt.Errorf("look up quarantines: %w", err)
	}
	by, found := in(l.quarantines.set.Load(), l.opts.Now())
	if !found {
		return "", false, nil
	}
	return by.Name, true, nil
}

// Ages returns the ages of the resources that are followed.
func (l *Live) Ages() []staleness.Aged {
	var all []staleness.Aged
	for _, f := range l.followers() {
		all = append(all, f.copied.Age)
	}
	return all
}

// Stats returns the state of the resources that are followed.
func (l *Live) Stats() []Stats {
	var all []Stats
	for _, f := range l.followers() {
		all = append(all, f.stats())
	}
	return all
}

// QuarantinedNodes returns the number of nodes that are quarantined.
func (l *Live) QuarantinedNodes() int { return int(l.quarantines.nodes.Load()) }
