package machines

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/gate"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// What deploy/bootstrap says, and this package replaces.
const (
	bootstrapAddress = `":10443"`
	metricsAddress   = `":10444"`
	certificatesDir  = "/etc/node-authorizer/tls"
	clusterName      = "CLUSTER_NAME"
)

// Replica is one server.
type Replica struct {
	*localplane.Program
	// Gate is between the server and kube-apiserver.
	Gate *gate.Gate
	// Address is the host:port for machines.
	Address string

	cluster      *Cluster
	name         string
	dir, metrics string
	arguments    []string
	env          []string
}

// ReplicaOption changes a server before it starts.
type ReplicaOption func(*Replica) error

// WithConfig changes its config file: old texts are replaced by new ones, and
// each old one has to be there.
func WithConfig(oldNew ...string) ReplicaOption {
	return func(r *Replica) error {
		text, err := os.ReadFile(r.configFile())
		if err != nil {
			return err
		}
		for i := 0; i < len(oldNew); i += 2 {
			if !strings.Contains(string(text), oldNew[i]) {
				return fmt.Errorf("%s does not say %q", r.configFile(), oldNew[i])
			}
			text = []byte(strings.Replace(string(text), oldNew[i], oldNew[i+1], 1))
		}
		return os.WriteFile(r.configFile(), text, 0o600)
	}
}

// WithArguments replaces its arguments, and gives it more environment.
func WithArguments(arguments, env []string) ReplicaOption {
	return func(r *Replica) error {
		r.arguments, r.env = arguments, append(r.env, env...)
		return nil
	}
}

// Prepare makes a server with all that it reads, which does not run yet.
func (c *Cluster) Prepare(ctx context.Context, name string) (*Replica, error) {
	r := &Replica{cluster: c, name: name, dir: filepath.Join(c.dir, name)}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	for _, address := range []*string{&r.Address, &r.metrics} {
		port, err := c.TakePort()
		if err != nil {
			return nil, err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	certificate, key, err := c.ServingCertificate(name)
	if err != nil {
		return nil, err
	}
	r.Gate, err = gate.Listen(gate.Options{Server: c.Server(), CAFile: c.CAFile(), CertFile: certificate, KeyFile: key})
	if err != nil {
		return nil, err
	}
	for _, file := range []struct{ name, from string }{{"tls.crt", certificate}, {"tls.key", key}, {"ca.crt", c.CAFile()}} {
		if err := copyFile(filepath.Join(r.dir, file.name), file.from); err != nil {
			return nil, err
		}
	}
	if err := c.writeCertificates(r.AWSCertificates()); err != nil {
		return nil, err
	}
	if err := r.writeKubeconfig(ctx); err != nil {
		return nil, err
	}
	metadata, err := c.Cloud.Metadata(c.own.ID)
	if err != nil {
		return nil, err
	}
	r.env = metadata.Environment()
	r.arguments = []string{"server", "--config=" + r.configFile()}
	return r, r.writeConfig()
}

// AddReplica makes a server and starts it.
func (c *Cluster) AddReplica(ctx context.Context, name string, options ...ReplicaOption) (*Replica, error) {
	r, err := c.Prepare(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("add the server %s: %w", name, err)
	}
	for _, option := range options {
		if err := option(r); err != nil {
			return nil, fmt.Errorf("add the server %s: %w", name, err)
		}
	}
	r.Program, err = c.AddProgram(ctx, name, localplane.ProgramOptions{
		Path: c.Program, Args: r.arguments, Env: environment(r.env), Ready: r.Ready,
	})
	return r, err
}

// writeConfig writes the config file that users get, with other addresses and
// folders.
func (r *Replica) writeConfig() error {
	text, err := os.ReadFile(filepath.Join(r.cluster.deploy(), "config.yaml"))
	if err != nil {
		return err
	}
	config := strings.NewReplacer(
		bootstrapAddress, quote(r.Address), metricsAddress, quote(r.metrics), certificatesDir, r.dir,
		clusterName, Name+"\n    certificatesFile: "+r.AWSCertificates(),
	).Replace(string(text))
	config += "cluster:\n  kubeconfig: " + r.Kubeconfig() + "\n"
	return os.WriteFile(r.configFile(), []byte(config), 0o600)
}

// writeKubeconfig gives it the service account of deploy/bootstrap.
func (r *Replica) writeKubeconfig(ctx context.Context) error {
	_, account, _ := strings.Cut(strings.TrimPrefix(ServiceUser, "system:serviceaccount:"), ":")
	token, err := r.cluster.Client.CoreV1().ServiceAccounts(metav1.NamespaceSystem).
		CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a token of the service account %s: %w", account, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[Name] = &clientcmdapi.Cluster{Server: r.Gate.Address(), CertificateAuthority: r.cluster.CAFile()}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[Name] = &clientcmdapi.Context{Cluster: Name, AuthInfo: account}
	config.CurrentContext = Name
	return clientcmd.WriteToFile(*config, r.Kubeconfig())
}

func (r *Replica) configFile() string { return filepath.Join(r.dir, "config.yaml") }

// Kubeconfig is the path of the kubeconfig of the server.
func (r *Replica) Kubeconfig() string { return filepath.Join(r.dir, "kubeconfig") }

// AWSCertificates is the path of the certificates that identity documents verify
// against.
func (r *Replica) AWSCertificates() string { return filepath.Join(r.dir, "aws.pem") }

// File is the path of a file in the server's folder: tls.crt, tls.key, ca.crt.
func (r *Replica) File(name string) string { return filepath.Join(r.dir, name) }

// MetricsAddress is the host:port of its metrics.
func (r *Replica) MetricsAddress() string { return r.metrics }

// Ready returns nil when the server says that it is ready.
func (r *Replica) Ready(ctx context.Context) error {
	answer, err := r.response(ctx, "/readyz")
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("%s is not ready: %s", r.name, answer.Body)
	}
	return err
}

// response asks the server for a page, over a connection of its own, so that the
// answer is that of the server that listens now.
func (r *Replica) response(ctx context.Context, path string) (Answer, error) {
	client, err := r.cluster.httpsClient("")
	if err != nil {
		return Answer{}, err
	}
	return do(ctx, client, http.MethodGet, "https://"+r.Address+path, nil)
}

// Metrics are those of the server as it tells them to Prometheus.
func (r *Replica) Metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.metrics+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// httpsClient trusts the cluster's authority, and speaks from an address if one
// is given.
func (c *Cluster) httpsClient(from string) (*http.Client, error) {
	roots, err := c.authorities()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	if from != "" {
		transport.DialContext = dialerFrom(from).DialContext
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: transport}, nil
}

// authorities are the cluster's.
func (c *Cluster) authorities() (*x509.CertPool, error) {
	authority, err := os.ReadFile(c.CAFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("the plane's authority is not a certificate")
	}
	return roots, nil
}

// control is the environment with which a program takes itself to be on an
// instance.
func control(metadata *fakeaws.Metadata) []string { return environment(metadata.Environment()) }

func quote(text string) string { return `"` + text + `"` }

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
