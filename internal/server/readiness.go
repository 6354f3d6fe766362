package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
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

// isDispensable reports whether only questions about a resource itself depend on it, or, for CSI drivers,
// only tokens for their own audiences. If it may not be read, only those questions have no answer, and
// the server is ready: a newer Kubernetes may serve a resource that an older role does not grant.
func isDispensable(resource schema.GroupResource) bool {
	switch resource {
	case schema.GroupResource{Group: storagev1.GroupName, Resource: "volumeattachments"},
		schema.GroupResource{Group: storagev1.GroupName, Resource: "csidrivers"},
		schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceslices"},
		schema.GroupResource{Group: certificatesv1.GroupName, Resource: "podcertificaterequests"}:
		return true
	}
	return false
}

// divide divides lines about resources by whether the server is ready without the resource.
func divide[R any](all []R, about func(R) (resource schema.GroupResource, line string)) (needed, dispensable []string) {
	for _, r := range all {
		if resource, line := about(r); isDispensable(resource) {
			dispensable = append(dispensable, line)
		} else {
			needed = append(needed, line)
		}
	}
	return needed, dispensable
}

// rights returns an error if a resource may not be read that other answers depend on. Without pods, for
// example, the server would refuse most requests of kubelets.
func rights(missing []source.Missing) (note string, err error) {
	needed, dispensable := divide(missing, func(m source.Missing) (schema.GroupResource, string) {
		return m.Resource, m.Resource.String() + ": " + m.Reason
	})
	if len(needed) > 0 {
		return "", fmt.Errorf("cannot read what decisions depend on: %s", strings.Join(needed, "; "))
	}
	if len(dispensable) > 0 {
		return "questions about these have no answer: " + strings.Join(dispensable, "; "), nil
	}
	return "", nil
}

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
	needed, dispensable := divide(old.Resources, func(r source.Watched) (schema.GroupResource, string) {
		return r.Resource, r.Resource.String() + " (" + r.StaleReason() + ")"
	})
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
