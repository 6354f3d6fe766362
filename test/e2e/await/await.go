// Package await waits for conditions.
package await

import (
	"context"
	"fmt"
	"time"
)

const (
	// Timeout bounds the wait for a condition.
	Timeout = 90 * time.Second
	// Interval is the time between two checks.
	Interval = 100 * time.Millisecond
	// Try bounds one check: a request that a fault swallows is made again.
	Try = 30 * time.Second
)

// Until waits until a condition returns nil, which each check has [Try] for. The error has the last
// error of the condition.
func Until(ctx context.Context, what string, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("it took longer than %s", Timeout))
	defer cancel()
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		err := check(ctx, condition)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w (the last answer: %w)", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func check(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, Try)
	defer cancel()
	return condition(ctx)
}
