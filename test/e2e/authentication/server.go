package authentication

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

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/awsstandin"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// user is whom kube-apiserver takes the server for. It has the rights that deploy/iam
// gives it, and no others.
const user = "node-authorizer"

// config is that of the server, which does nothing but say who the bearers of tokens
// are.
const config = `apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
cluster:
  kubeconfig: %s
webhook:
  address: %q
  certificateFile: %s
  keyFile: %s
  clientCAFile: %s
  serves: [Authentication]
metrics:
  address: %q
iam:
  clusterID: %s
  region: %s
%slog:
  refusals:
    verbosity: 0
`

// server is the process of node-authorizer that kube-apiserver asks.
type server struct {
	*localplane.Program
	address, metrics, dir string
	certificate, key      string
	authority             string
}

func newServer(p *localplane.Plane, c *Cluster) (*server, error) {
	s := &server{dir: filepath.Join(c.dir, "server"), authority: p.CAFile()}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	for _, address := range []*string{&s.address, &s.metrics} {
		port, err := p.TakePort()
		if err != nil {
			return nil, err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	var err error
	s.certificate, s.key, err = p.ServingCertificate("iam")
	return s, err
}

// writeWebhook writes the kubeconfig with which kube-apiserver asks the server.
func (s *server) writeWebhook(p *localplane.Plane, path string) error {
	certificate, key, err := p.ClientCertificate("token-webhook", "kube-apiserver")
	if err != nil {
		return err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["iam"] = &clientcmdapi.Cluster{Server: "https://" + s.address + "/authenticate", CertificateAuthority: s.authority}
	kubeconfig.AuthInfos["kube-apiserver"] = &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key}
	kubeconfig.Contexts["iam"] = &clientcmdapi.Context{Cluster: "iam", AuthInfo: "kube-apiserver"}
	kubeconfig.CurrentContext = "iam"
	return clientcmd.WriteToFile(*kubeconfig, path)
}

// start runs the server on an instance of its own.
func (s *server) start(ctx context.Context, p *localplane.Plane, c *Cluster) error {
	kubeconfig, err := p.UserKubeconfig("iam-server", user)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(config, kubeconfig, s.address, s.certificate, s.key, s.authority, s.metrics, ClusterID, Region, c.options.IAM)
	path := c.ConfigFile()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	own := c.Cloud.Launch(awsstandin.Instance{
		Region: Region, Role: "masters", Profile: "arn:aws:iam::" + awsstandin.DefaultAccount + ":instance-profile/masters",
	})
	metadata, err := c.Cloud.Metadata(own.ID)
	if err != nil {
		return err
	}
	env := environment(c.Front.Environment()...)
	for _, variable := range metadata.Environment() {
		if strings.HasPrefix(variable, "AWS_EC2_METADATA_SERVICE_ENDPOINT=") {
			env = append(env, variable)
		}
	}
	s.Program, err = p.AddProgram(ctx, "node-authorizer", localplane.ProgramOptions{
		Path: c.Program, Args: []string{"server", "--config=" + path}, Env: env, Ready: s.ready,
	})
	return err
}

// ready returns nil when the server says that it is ready.
func (s *server) ready(ctx context.Context) error {
	body, status, err := s.get(ctx, "https://"+s.address+"/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("it is not ready: %s", body)
	}
	return err
}

// get asks the server for a page.
func (s *server) get(ctx context.Context, url string) (body string, status int, err error) {
	authority, err := os.ReadFile(s.authority)
	if err != nil {
		return "", 0, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return "", 0, errors.New("the plane's authority is not a certificate")
	}
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), response.StatusCode, err
}

// ServerAddress is the host:port of the server.
func (c *Cluster) ServerAddress() string { return c.server.address }

// ConfigFile is the path of its config file.
func (c *Cluster) ConfigFile() string { return filepath.Join(c.server.dir, "config.yaml") }

// Metrics are those of the server.
func (c *Cluster) Metrics(ctx context.Context) (string, error) {
	body, _, err := c.server.get(ctx, "http://"+c.server.metrics+"/metrics")
	return body, err
}

// Log is what the server has written.
func (c *Cluster) Log() (string, error) {
	text, err := os.ReadFile(c.server.LogFile())
	return string(text), err
}
