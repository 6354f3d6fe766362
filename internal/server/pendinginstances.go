package server

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/iam/instances"
)

// pendingInstances is a look-up of instances that becomes ready later: the region may have
// to come from the metadata service of the server's own instance. Until then look-ups
// return an error, so that no caller is authenticated as a node or refused.
type pendingInstances struct {
	make func(context.Context) (iam.Instances, error)
	made atomic.Pointer[iam.Instances]
	// trouble is the last error of make.
	trouble atomic.Pointer[error]
}

// newPendingInstances returns look-ups that send requests to IAM through a transport; nil
// for the default of the SDK.
func newPendingInstances(
	c *v1alpha1.IAM,
	shared *sharedEC2,
	transport http.RoundTripper,
	observe func(service, outcome string),
) *pendingInstances {
	return &pendingInstances{make: func(ctx context.Context) (iam.Instances, error) {
		askIAM, region, err := instances.NewIAM(ctx, c.Region, transport)
		if err != nil {
			return nil, err
		}
		client, err := shared.get(ctx)
		if err != nil {
			return nil, err
		}
		return instances.New(instances.Options{
			EC2: client, Region: region, IAM: askIAM, TTL: c.EC2.CacheTTL.Duration, Size: int(c.EC2.CacheSize),
			PerSecond: float64(c.EC2.PerSecond), Burst: int(c.EC2.Burst),
			Observe: func(outcome string) { observe("IAM", outcome) },
		}), nil
	}}
}

// follow tries to make the look-up until it succeeds or the context ends.
func (l *pendingInstances) follow(ctx context.Context, logger logr.Logger) {
	backoff, reported := connectBackoff(), ""
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		made, err := l.make(attempt)
		cancel()
		if err == nil {
			l.made.Store(&made)
			return
		}
		l.trouble.Store(&err)
		if err.Error() != reported {
			reported = err.Error()
			logger.Info("waiting for the settings to look up instances", "cause", reported)
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
		}
	}
}

// Instance implements iam.Instances.
func (l *pendingInstances) Instance(ctx context.Context, id string, withRoles bool) (*iam.Instance, error) {
	made, err := l.get()
	if err != nil {
		return nil, err
	}
	return made.Instance(ctx, id, withRoles)
}

func (l *pendingInstances) get() (iam.Instances, error) {
	if made := l.made.Load(); made != nil {
		return *made, nil
	}
	cause := errNoAnswer
	if trouble := l.trouble.Load(); trouble != nil {
		cause = *trouble
	}
	return nil, fmt.Errorf("instances cannot be looked up yet: %w", cause)
}

// state holds when instances can be looked up.
func (l *pendingInstances) state() (note string, err error) {
	_, err = l.get()
	return "", err
}
