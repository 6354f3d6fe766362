package server

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/apiserver"
	"github.com/node-authorizer/node-authorizer/internal/join/clusterapi"
)

// management has the Machines in the management cluster of Cluster API.
type management struct {
	*clusterapi.Registry
	// connection is nil if the Machines are in the cluster of the service.
	connection *apiserver.Connection
}

// newManagement lets the attestor ask for Machines of Cluster API; nil if these do not register machines.
func newManagement(j *join, opts Options, cluster *rest.Config, metrics certificateObserver) (*management, error) {
	c := &j.config.Bootstrap.ClusterAPI
	if !c.Enabled() {
		return nil, nil
	}
	m := &management{}
	if c.Kubeconfig != "" {
		var err error
		if m.connection, err = connectTo(managementKubeconfig, c.Kubeconfig, opts, metrics); err != nil {
			return nil, err
		}
		cluster = m.connection.Config()
		cluster.QPS = -1 // only the API server limits
	}
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to management cluster %s: %w", cluster.Host, err)
	}
	m.Registry = clusterapi.New(clusterapi.Options{
		Client: client, Namespaces: c.Namespaces, ClusterName: c.ClusterName, MaxAge: j.config.Cluster.MaxStaleness.Duration,
	})
	j.attestor.registered = m.Registry
	return m, nil
}

// follow keeps the Machines up to date until the context ends.
func (m *management) follow(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if m.connection != nil {
		running.Go(func() { m.connection.Run(ctx) })
	}
	m.Run(ctx)
}
