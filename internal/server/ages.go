package server

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// agesInterval is how often the ages of copies are checked.
const agesInterval = time.Second

// checkAges returns an error that names the copies that are too old.
func checkAges(ages []staleness.Aged) error {
	var old []error
	for _, a := range ages {
		old = append(old, a.Check())
	}
	return errors.Join(old...)
}

// logAges logs once when a copy becomes too old, with the cause, and once when it is current
// again, until the context ends.
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
				logger.Error(err, "a copy is too old: answers that depend on it are errors, and the server is not ready",
					"source", a.Source())
			case err == nil && old[i]:
				logger.Info("a copy is current again", "source", a.Source())
			}
			old[i] = err != nil
		}
	}
}
