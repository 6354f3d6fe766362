package server

import (
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// live returns the state of the cluster; nil before the API server has answered.
func (w *webhooks) live() *source.Live {
	live, _ := w.state.get()
	return live
}

// graphSync is a readiness check: the state of the cluster has been read.
func (w *webhooks) graphSync() (string, error) {
	live, err := w.state.get()
	if err != nil {
		return "", err
	}
	return "", syncing(live)
}

// rights is a readiness check: all resources that decisions depend on may be read.
func (w *webhooks) rights() (string, error) {
	live := w.live()
	if live == nil {
		return "not asked yet", nil
	}
	return rights(live.State().Missing())
}

// authorization is a readiness check: there are evaluators.
func (w *webhooks) authorization() (string, error) {
	minor := w.answers.Load().minor
	if minor == 0 {
		if err := w.trouble.Load(); err != nil {
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
