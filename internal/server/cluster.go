package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/apiserver"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// The fields with kubeconfigs.
const (
	clusterKubeconfig    = "cluster.kubeconfig"
	managementKubeconfig = "bootstrap.clusterAPI.kubeconfig"
)

// connectTo reads how to connect to an API server, from the kubeconfig in a field. It sends no request.
func connectTo(field, kubeconfig string, opts Options, metrics certificateObserver) (*apiserver.Connection, error) {
	return apiserver.Open(apiserver.Options{
		Kubeconfig: kubeconfig, Field: field, UserAgent: "node-authorizer/" + opts.Version,
		Observer: credentialLog{opts.Logger.WithValues("field", field), metrics},
	})
}

// credentialLog logs changes of the credentials for the API server.
type credentialLog struct {
	logger  logr.Logger
	metrics certificateObserver
}

// CredentialsRead implements apiserver.Observer.
func (l credentialLog) CredentialsRead() {
	l.logger.Info("credentials for the API server read again")
}

// CredentialsRejected implements apiserver.Observer.
func (l credentialLog) CredentialsRejected(err error) {
	l.metrics.CertificateReloadFailed()
	l.logger.Error(err, "changed credentials for the API server cannot be used; the previous ones stay in use")
}

// watch begins to watch the cluster.
func (w *webhooks) watch(ctx context.Context) (*source.Live, error) {
	return source.Watch(ctx, w.cluster, source.LiveOptions{
		WithoutRBAC: !w.asksRBAC(), APIServices: w.config.Containment.NodeScopes == v1alpha1.Enabled, MissingChanged: w.missingChanged,
		MaxStaleness: w.config.Cluster.MaxStaleness.Duration, StaleChanged: w.staleChanged, Reset: w.stateReset,
	})
}

func (w *webhooks) missingChanged(m source.Missing, missing bool) {
	switch {
	case !missing:
		w.logger.Info("resource can be read again", "resource", m.Resource.String())
	case isDispensable(m.Resource):
		w.logger.Info("resource cannot be read: questions about it have no answer",
			"resource", m.Resource.String(), "reason", m.Reason)
	default:
		w.logger.Error(errors.New(m.Reason), "resource cannot be read: the server is not ready", "resource", m.Resource.String())
	}
}

// featuresOf returns the rules for a cluster with a server version. An unknown version has the rules
// of the nearest known one.
func featuresOf(config *v1alpha1.Cluster, serverVersion string) (features kubeversion.Features, exact bool, err error) {
	minor, err := kubeversion.Parse(serverVersion)
	exact = err == nil
	if config.KubernetesVersion != "" {
		minor, err = kubeversion.Parse(config.KubernetesVersion)
		if err != nil {
			return features, false, fmt.Errorf("cluster.kubernetesVersion: %w", err)
		}
		exact = true
	}
	if !exact {
		minor = nearestMinor(serverVersion)
	}
	features = kubeversion.For(minor)
	for _, gate := range slices.Sorted(maps.Keys(config.FeatureGates)) {
		if features, err = features.With(kubeversion.Gate(gate), config.FeatureGates[gate]); err != nil {
			return features, exact, fmt.Errorf("cluster.featureGates.%s: %w; correct the configuration and start the server again",
				gate, err)
		}
	}
	return features, exact, nil
}

// nearestMinor returns the oldest minor for older servers, and the latest for all others.
func nearestMinor(serverVersion string) kubeversion.Minor {
	var minor int
	_, err := fmt.Sscanf(strings.TrimPrefix(serverVersion, "v"), "1.%d", &minor)
	if err == nil && minor < int(kubeversion.Oldest) {
		return kubeversion.Oldest
	}
	return kubeversion.Latest
}

// syncing returns an error that names the resources that have not been read yet, or are being read
// again.
func syncing(live *source.Live) error {
	var waiting []string
	for _, w := range live.Resources() {
		if w.Following != source.Reading {
			continue
		}
		line := w.Resource.String()
		if w.Err != nil {
			line += " (" + w.Err.Error() + ")"
		}
		waiting = append(waiting, line)
	}
	if len(waiting) == 0 && live.Synced() {
		return nil
	}
	return fmt.Errorf("reading %s", strings.Join(waiting, ", "))
}
