package server

import (
	"context"
	"net/http"
	"sync"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
)

// sharedEC2 is the EC2 client that all parts of the server share: they have one account and one
// quota, and therefore one rate limit.
type sharedEC2 struct {
	options   ec2instances.Options
	transport http.RoundTripper

	mu     sync.Mutex
	client *ec2instances.Client
}

// newSharedEC2 returns a client that uses a transport; nil for the transport of the SDK.
func newSharedEC2(c *v1alpha1.EC2, transport http.RoundTripper, observe func(service, outcome string)) *sharedEC2 {
	return &sharedEC2{transport: transport, options: ec2instances.Options{
		PerSecond: float64(c.PerSecond), Burst: int(c.Burst),
		Observe: func(outcome string) { observe("EC2", outcome) },
	}}
}

// get returns the client. It creates the client at the first call, and retries after an error, because
// the settings of the SDK may be corrected.
func (s *sharedEC2) get(ctx context.Context) (*ec2instances.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		client, err := ec2instances.Load(ctx, s.options, s.transport)
		if err != nil {
			return nil, err
		}
		s.client = client
	}
	return s.client, nil
}
