package machines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/apiproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// Texts of deploy/bootstrap that this package replaces.
const (
	bootstrapAddress = `":10443"`
	metricsAddress   = `":10444"`
	certificatesDir  = "/etc/node-authorizer/tls"
	clusterName      = "CLUSTER_NAME"
	unattestedNodes  = "  unattestedNodes: Leave\n"
)

// Replica is one server. Its Address is that for machines.
type Replica struct {
	*server.Server
	// APIProxy is between the server and kube-apiserver.
	APIProxy *apiproxy.Proxy

	cluster *Cluster
	command server.Command
}

// ReplicaOption changes a server before it starts.
type ReplicaOption func(*Replica) error

// WithConfig replaces texts in the config file. A missing old text is an error.
func WithConfig(oldNew ...string) ReplicaOption {
	return func(r *Replica) error {
		text, err := os.ReadFile(r.ConfigFile())
		if err != nil {
			return err
		}
		for i := 0; i < len(oldNew); i += 2 {
			if !strings.Contains(string(text), oldNew[i]) {
				return fmt.Errorf("%s does not say %q", r.ConfigFile(), oldNew[i])
			}
			text = []byte(strings.Replace(string(text), oldNew[i], oldNew[i+1], 1))
		}
		return r.WriteConfig(string(text))
	}
}

// WithArguments replaces the arguments, and adds environment variables.
func WithArguments(arguments, env []string) ReplicaOption {
	return func(r *Replica) error {
		r.command.Args, r.command.Env = arguments, append(r.command.Env, env...)
		return nil
	}
}

// prepare writes the files of a new server.
func (c *Cluster) prepare(ctx context.Context, name string) (*Replica, error) {
	r := &Replica{cluster: c}
	var err error
	if r.Server, err = server.New(c.Plane, name, filepath.Join(c.dir, name)); err != nil {
		return nil, err
	}
	r.APIProxy, err = apiproxy.Listen(apiproxy.Options{
		Server: c.Server(), CAFile: c.CAFile(), CertFile: r.File("tls.crt"), KeyFile: r.File("tls.key"),
	})
	if err != nil {
		return nil, err
	}
	if err := c.writeCertificates(r.awsCertificates()); err != nil {
		return nil, err
	}
	if err := r.writeKubeconfig(ctx); err != nil {
		return nil, err
	}
	metadata, err := c.Cloud.Metadata(c.own.ID)
	if err != nil {
		return nil, err
	}
	r.command = server.Command{Program: c.Program, Env: environment(metadata)}
	return r, r.writeConfig()
}

// AddReplica makes a server and starts it.
func (c *Cluster) AddReplica(ctx context.Context, name string, options ...ReplicaOption) (*Replica, error) {
	r, err := c.prepare(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("add the server %s: %w", name, err)
	}
	for _, option := range options {
		if err := option(r); err != nil {
			return nil, fmt.Errorf("add the server %s: %w", name, err)
		}
	}
	return r, r.Run(ctx, r.command)
}

// ServingNetwork is where nodes that were never attested may serve, under their own names, if the status
// of their Nodes says so.
const ServingNetwork = "198.51.100.0/24"

// writeConfig writes the config file of deploy/bootstrap with other addresses and
// folders, with Quarantines, and with a source for serving certificates of nodes that were never attested.
func (r *Replica) writeConfig() error {
	text, err := os.ReadFile(filepath.Join(r.cluster.deploy(), "config.yaml"))
	if err != nil {
		return err
	}
	config := strings.NewReplacer(
		bootstrapAddress, strconv.Quote(r.Address), metricsAddress, strconv.Quote(r.MetricsAddress), certificatesDir, r.Dir(),
		clusterName, Name+"\n    certificatesFile: "+r.awsCertificates(),
		unattestedNodes, unattestedNodes+`  servingCertificates: [{names: ["{{.NodeName}}"], networks: [`+ServingNetwork+
			"], nodeAddresses: true}]\n",
	).Replace(string(text))
	config += "cluster:\n  kubeconfig: " + r.Kubeconfig() + "\ncontainment:\n  quarantines: Enabled\n"
	return r.WriteConfig(config)
}

// writeKubeconfig writes a kubeconfig with the service account of deploy/bootstrap.
func (r *Replica) writeKubeconfig(ctx context.Context) error {
	_, account, _ := strings.Cut(strings.TrimPrefix(ServiceUser, "system:serviceaccount:"), ":")
	token, err := r.cluster.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).
		CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a token of the service account %s: %w", account, err)
	}
	return r.WriteKubeconfig(r.APIProxy.Address(), &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// awsCertificates returns the path of the certificates for identity documents.
func (r *Replica) awsCertificates() string { return r.File("aws.pem") }

// environment returns the environment of a program on an instance.
func environment(metadata *fakeaws.Metadata) []string {
	return server.Environment(metadata.Environment()...)
}
