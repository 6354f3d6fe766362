package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// contained follows NodeScopes and Quarantines, for all parts of the server. It is nil if the
// configuration enables neither.
type contained struct {
	config *v1alpha1.Containment
	live   *containment.Live
	// nodes is nil if the limit of quarantined nodes does not depend on their number.
	nodes *nodeCount
	// cluster is the state that the webhooks follow; nil before they do, and without webhooks.
	cluster atomic.Pointer[source.Live]
	// users returns the names of the server's own user, as far as they are known.
	users func() []string
	now   func() time.Time
}

// newContained returns the follower for a valid configuration.
func newContained(
	config *v1alpha1.ServerConfiguration, opts Options, cluster *rest.Config, metrics *observe.Metrics,
) (*contained, error) {
	if !config.Containment.Enabled() {
		return nil, nil
	}
	c := &contained{config: &config.Containment, users: opts.users, now: opts.now}
	var err error
	limit := c.config.MaxQuarantinedNodes
	if c.config.Quarantines == v1alpha1.Enabled && strings.HasSuffix(string(limit), "%") {
		if c.nodes, err = newNodeCount(cluster, opts.Logger); err != nil {
			return nil, err
		}
	}
	c.live, err = containment.New(containment.Options{
		Cluster:    cluster,
		NodeScopes: c.config.NodeScopes == v1alpha1.Enabled, Quarantines: c.config.Quarantines == v1alpha1.Enabled,
		MaxQuarantinedNodes: c.maxNodes, Record: c.nodes != nil, Aggregation: c.aggregation,
		MaxStaleness: config.Cluster.MaxStaleness.Duration,
		Observer:     newContainmentLog(opts.Logger), Now: opts.now,
	})
	if err != nil {
		return nil, fmt.Errorf("containment: %w", err)
	}
	metrics.WatchContainment(c.live)
	return c, nil
}

// maxNodes returns how many nodes may be quarantined; false if that is not known yet.
func (c *contained) maxNodes() (int, bool) {
	if c.nodes == nil {
		return c.config.MaxQuarantinedNodes.Of(0), true
	}
	nodes, known := c.nodes.get()
	return c.config.MaxQuarantinedNodes.Of(nodes), known
}

// aggregation returns which versions other API servers serve; nil if that is not known yet, or cannot be read.
func (c *contained) aggregation() *nodescope.Aggregation {
	cluster := c.cluster.Load()
	if cluster == nil || !cluster.Synced() {
		return nil
	}
	if known := cluster.State().Aggregation(); known.Complete {
		return known
	}
	return nil
}

// knows sets the state that the webhooks follow.
func (c *contained) knows(cluster *source.Live) {
	if c != nil {
		c.cluster.Store(cluster)
	}
}

// follow follows both resources, and counts the nodes, until the context ends.
func (c *contained) follow(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if c.nodes != nil {
		running.Go(func() { c.nodes.follow(ctx) })
	}
	c.live.Run(ctx)
}

func (c *contained) ages() []staleness.Aged {
	if c == nil {
		return nil
	}
	return c.live.Ages()
}

// addTo adds the readiness checks to the parts that the listeners serve.
func (c *contained) addTo(p *parts, joins bool) {
	if c == nil {
		return
	}
	if c.config.NodeScopes == v1alpha1.Enabled {
		p.ready = append(p.ready, check{"nodescopes", c.scopesReady})
	}
	if c.config.Quarantines != v1alpha1.Enabled {
		return
	}
	if p.ready = append(p.ready, check{"quarantines", c.quarantinesReady}); joins {
		p.joinReady = append(p.joinReady, check{"join-quarantines", c.quarantinesReady})
	}
}

func (c *contained) scopesReady() (string, error) { return "", c.live.NodeScopesFresh() }

func (c *contained) quarantinesReady() (string, error) { return "", c.live.QuarantinesFresh() }

// options are what an evaluator asks before all authorizers.
func (c *contained) options() evaluate.Containment {
	if c == nil {
		return evaluate.Containment{}
	}
	o := evaluate.Containment{Self: c.self, Now: c.now}
	if c.config.NodeScopes == v1alpha1.Enabled {
		o.Scopes, o.ScopesKnown = c.live.Policy(), c.live.NodeScopesFresh
	}
	if c.config.Quarantines == v1alpha1.Enabled {
		o.Quarantines = func() (*quarantine.Set, error) { return c.live.Quarantines().Load(), c.live.QuarantinesFresh() }
	}
	return o
}

// quarantined finds quarantined nodes and credentials for other parts of the server; nil if Quarantines are
// not followed.
func (c *contained) quarantined() controller.Quarantines {
	if c == nil || c.config.Quarantines != v1alpha1.Enabled {
		return nil
	}
	return c.live
}

// self reports whether a user is the server's own.
func (c *contained) self(user string) bool { return slices.Contains(c.users(), user) }

// concerns reports whether a NodeScope or a Quarantine may refuse the requests of a user, so that they
// cannot be decided before these are known.
func (c *contained) concerns(user string, extra map[string][]string) bool {
	if c == nil || c.self(user) {
		return false
	}
	_, _, account := nodeidentity.ServiceAccount(user)
	quarantined := len(extra) > 0 || strings.HasPrefix(user, nodeidentity.UserPrefix)
	return account && c.config.NodeScopes == v1alpha1.Enabled || quarantined && c.config.Quarantines == v1alpha1.Enabled
}

// nodeCount counts the nodes of the cluster from time to time. Every part of a server may need the
// number, and not every server watches nodes.
type nodeCount struct {
	client metadata.Interface
	logger logr.Logger
	// interval is the time between counts, and retry that after a failure.
	interval, retry time.Duration
	// nodes is -1 until the nodes have been counted.
	nodes atomic.Int64
}

const (
	countInterval = time.Minute
	countRetry    = time.Second
	countTimeout  = 30 * time.Second
	countPage     = 500
)

func newNodeCount(cluster *rest.Config, logger logr.Logger) (*nodeCount, error) {
	cluster = rest.CopyConfig(cluster)
	cluster.QPS = -1 // only the API server limits
	client, err := metadata.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", cluster.Host, err)
	}
	c := &nodeCount{client: client, logger: logger, interval: countInterval, retry: countRetry}
	c.nodes.Store(-1)
	return c, nil
}

// get returns the number of nodes; false if it is not known yet.
func (c *nodeCount) get() (int, bool) {
	nodes := int(c.nodes.Load())
	return max(nodes, 0), nodes >= 0
}

// follow counts until the context ends.
func (c *nodeCount) follow(ctx context.Context) {
	failed := false
	for {
		nodes, err := c.count(ctx)
		pause := c.interval
		switch {
		case err == nil:
			c.nodes.Store(int64(nodes))
			failed = false
		case ctx.Err() == nil:
			pause = c.retry
			if !failed {
				c.logger.Error(err, "the nodes cannot be counted, on whose number containment.maxQuarantinedNodes depends")
			}
			failed = true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// count reads one node if the API server says how many others there are, and otherwise all.
func (c *nodeCount) count(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	nodes := 0
	opts := metav1.ListOptions{Limit: 1}
	for {
		page, err := c.client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).List(ctx, opts)
		if err != nil {
			return 0, fmt.Errorf("list nodes: %w", err)
		}
		nodes += len(page.Items)
		switch {
		case page.Continue == "":
			return nodes, nil
		case page.RemainingItemCount != nil:
			return nodes + int(*page.RemainingItemCount), nil
		}
		opts.Limit, opts.Continue = countPage, page.Continue
	}
}
