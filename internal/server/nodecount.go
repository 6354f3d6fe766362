package server

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

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
