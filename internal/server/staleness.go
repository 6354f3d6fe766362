package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// stateAge is a readiness check: no copy is too old that other answers depend on.
func (w *webhooks) stateAge() (note string, err error) {
	live := w.live()
	if live == nil {
		return "not known yet", nil
	}
	return stateAge(live.TooOld(^source.Kinds(0)))
}

func stateAge(err error) (string, error) {
	var old *source.AgeError
	if !errors.As(err, &old) {
		return "", nil
	}
	var needed, dispensable []string
	for _, r := range old.Resources {
		line := r.Resource.String() + " (" + r.StaleReason() + ")"
		if isDispensable(r.Resource) {
			dispensable = append(dispensable, line)
		} else {
			needed = append(needed, line)
		}
	}
	if len(needed) > 0 {
		return "", fmt.Errorf("older than cluster.maxStaleness, %v, so that what depends on it is an error: %s",
			old.MaxStaleness, strings.Join(slices.Concat(needed, dispensable), ", "))
	}
	return fmt.Sprintf("older than %v, so that questions about these have no answer: %s",
		old.MaxStaleness, strings.Join(dispensable, ", ")), nil
}

// staleChanged logs that a resource becomes too old, or current again.
func (w *webhooks) staleChanged(r source.Watched, stale bool) {
	if !stale {
		w.logger.Info("the state of a resource is current again", "resource", r.Resource.String())
		return
	}
	w.logger.Error(errors.New(r.StaleReason()), "the state of a resource is too old: answers that depend on it are errors",
		"resource", r.Resource.String(), "maxStaleness", w.config.Cluster.MaxStaleness.Duration.String())
}

// stateReset logs that the state is dropped.
func (w *webhooks) stateReset(cause string) {
	w.logger.Error(errors.New(cause), "the state of the cluster was dropped and is read again: "+
		"answers that depend on it are errors until then")
}
