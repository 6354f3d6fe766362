package server

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// agesInterval is how often it is seen whether copies have become too old.
const agesInterval = time.Second

// checkAges returns which copies are too old.
func checkAges(ages []staleness.Aged) error {
	var old []error
	for _, a := range ages {
		old = append(old, a.Check())
	}
	return errors.Join(old...)
}

// logAges logs once when a copy has become too old, with the cause, and once when it
// is no more, until the context ends.
func logAges(ctx context.Context, logger logr.Logger, ages []staleness.Aged) {
	ticker := time.NewTicker(agesInterval)
	defer ticker.Stop()
	old := make([]bool, len(ages))
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for i, a := range ages {
			err := a.Check()
			switch {
			case err != nil && !old[i]:
				logger.Error(err, "what was read is too old: what depends on it is an error, and the server is not ready", "source", a.Source())
			case err == nil && old[i]:
				logger.Info("what was read is not too old any more", "source", a.Source())
			}
			old[i] = err != nil
		}
	}
}
