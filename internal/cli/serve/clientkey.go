package serve

import (
	"context"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/key"
)

func (j *joining) key(context.Context) (attest.Collector, error) {
	collector, err := key.NewCollector(key.CollectorOptions{
		KeyFile: j.keyFile, CertificateFile: j.certificateFile, ClusterID: j.clusterID, NodeName: j.NodeName,
	})
	if err != nil {
		return nil, command.Usagef("--authorizer=key: %v: give --key-file and --cluster-id", err)
	}
	return collector, nil
}
