package server

import (
	"errors"
	"fmt"
)

var errNoAnswer = errors.New("it has not answered yet")

// graphSync is a readiness check: the state of the cluster has been read.
func (w *webhooks) graphSync() (string, error) {
	live := w.live.Load()
	if live == nil {
		cause := errNoAnswer
		if err := w.trouble.Load(); err != nil {
			cause = *err
		}
		return "", fmt.Errorf("waiting for the API server: %w", cause)
	}
	return "", syncing(live)
}

// rights is a readiness check: all resources that decisions depend on may be read.
func (w *webhooks) rights() (string, error) {
	live := w.live.Load()
	if live == nil {
		return "not asked yet", nil
	}
	return rights(live.State().Missing())
}

// authorization is a readiness check: there are evaluators.
func (w *webhooks) authorization() (string, error) {
	minor := w.answers.Load().minor
	if minor == 0 {
		if err := w.trouble.Load(); err != nil && w.live.Load() != nil {
			return "", *err
		}
		return "", errors.New("the version of the API server is not known yet")
	}
	mode := "mode Node"
	if w.chain != nil {
		mode = fmt.Sprintf("mode Chain with %v", w.chain.Names())
	}
	return fmt.Sprintf("%s, rules of Kubernetes %s", mode, minor), nil
}
