package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// pause returns how long to wait before the next try, at least as long as the service asks
// for. Otherwise it is a random time between half of the interval and the whole, as in kops'
// node-authorizer.
func (c *client) pause(asked time.Duration) time.Duration {
	spread := time.Duration(rand.Int64N(int64(c.Interval/2) + 1))
	if asked > 0 {
		return asked + spread
	}
	return c.Interval - spread
}

// sleep waits, unless the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
