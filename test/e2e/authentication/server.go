package authentication

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// user is the server's user in the cluster. It has only the rights of deploy/iam and
// deploy/containment.
const user = "node-authorizer"

// config is the config file of a server that only authenticates.
const config = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
cluster:
  kubeconfig: %s
webhook:
  address: %q
  certificateFile: %s
  keyFile: %s
  clientCAFile: %s
  allowedClientNames: [kube-apiserver]
  serves: [Authentication]
metrics:
  address: %q
iam:
  clusterID: %s
  region: %s
%scontainment:
  quarantines: Enabled
log:
  refusals:
    verbosity: 0
`

// newServer makes the server that authenticates for kube-apiserver.
func (c *Cluster) newServer(p *localplane.Plane) (*server.Server, error) {
	return server.New(p, "node-authorizer", filepath.Join(c.dir, "server"))
}

// writeWebhook writes the kubeconfig of kube-apiserver for the server.
func (c *Cluster) writeWebhook(p *localplane.Plane) error {
	certificate, key, err := p.ClientCertificate("token-webhook", "kube-apiserver")
	if err != nil {
		return err
	}
	return server.WriteKubeconfig(c.webhookKubeconfig(), "https://"+c.Authenticator.Address+"/authenticate", p.CAFile(),
		&clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key})
}

// run starts the server on its own instance.
func (c *Cluster) run(ctx context.Context, p *localplane.Plane) error {
	kubeconfig, err := p.UserKubeconfig("iam-server", user)
	if err != nil {
		return err
	}
	s := c.Authenticator
	err = s.WriteConfig(fmt.Sprintf(config, kubeconfig, s.Address, s.File("tls.crt"), s.File("tls.key"), s.File("ca.crt"), s.MetricsAddress,
		ClusterID, Region, c.options.IAM))
	if err != nil {
		return err
	}
	own := c.Cloud.Launch(fakeaws.Instance{
		Region: Region, Role: "masters", Profile: "arn:aws:iam::" + fakeaws.DefaultAccount + ":instance-profile/masters",
	})
	metadata, err := c.Cloud.Metadata(own.ID)
	if err != nil {
		return err
	}
	env := server.Environment(c.Front.Environment()...)
	for _, variable := range metadata.Environment() {
		if strings.HasPrefix(variable, "AWS_EC2_METADATA_SERVICE_ENDPOINT=") {
			env = append(env, variable)
		}
	}
	return s.Run(ctx, server.Command{Program: c.Program, Env: env})
}
