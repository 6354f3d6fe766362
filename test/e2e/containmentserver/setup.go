package containmentserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// Setup has the settings that the servers of a control plane have in common.
type Setup struct {
	// Root is the folder of the repository, and Dir a temporary one.
	Root, Dir string
	// Scopes are files and folders with NodeScopes: the API servers ask about their accounts.
	Scopes []string
	// Quarantines makes the API servers ask about nodes and about tokens with a node too.
	Quarantines bool
}

// Program is the path of node-authorizer.
func (s *Setup) Program() string { return filepath.Join(s.Dir, "node-authorizer") }

// Build builds node-authorizer.
func (s *Setup) Build(ctx context.Context) error { return server.Build(ctx, s.Root, s.Program()) }

// AuthorizationConfig is the path of the AuthorizationConfiguration of an API server.
func (s *Setup) AuthorizationConfig(apiServer string) string {
	return s.file(apiServer, "authorization.yaml")
}

// Args are the other arguments of an API server.
func (s *Setup) Args(apiServer string) []string {
	return []string{"--admission-control-config-file=" + s.file(apiServer, "admission.yaml")}
}

func (s *Setup) file(apiServer, name string) string { return filepath.Join(s.Dir, apiServer, name) }

// admissionConfig names the client certificate for the admission webhook.
const admissionConfig = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %[1]s}
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %[1]s}
`

// WriteFiles writes the files of an API server, which it reads when it starts. Authorize and admit are the
// addresses that it asks.
func (s *Setup) WriteFiles(p *localplane.Plane, apiServer, authorize, admit string) error {
	if err := os.MkdirAll(s.file(apiServer, ""), 0o700); err != nil {
		return err
	}
	certificate, key, err := p.ClientCertificate(apiServer+"-to-webhooks", "kube-apiserver")
	if err != nil {
		return err
	}
	user := &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key}
	kubeconfig := s.file(apiServer, "authorize.kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig, "https://"+authorize+"/authorize", p.CAFile(), user); err != nil {
		return err
	}
	authorization, err := s.config("--webhook-kubeconfig", kubeconfig)
	if err != nil {
		return err
	}
	// The user's name is the host and port of the webhook.
	users := s.file(apiServer, "admission.kubeconfig")
	for path, text := range map[string]string{
		users: fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: %s\n  user: {client-certificate: %s, client-key: %s}\n",
			admit, certificate, key),
		s.AuthorizationConfig(apiServer):    authorization,
		s.file(apiServer, "admission.yaml"): fmt.Sprintf(admissionConfig, users),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Install installs the custom resources and the rights of the servers, once the API server has made the namespace
// default, in which some of these are.
func (s *Setup) Install(ctx context.Context, p *localplane.Plane) error {
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return err
	}
	err = await.Until(ctx, "there is the namespace default", func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range []string{
		"deploy/rbac/role.yaml", "deploy/static-pod/rbac.yaml",
		"deploy/containment/nodescopes.yaml", "deploy/containment/quarantines.yaml",
		"deploy/containment/quarantinednodes.yaml", "deploy/containment/role.yaml",
	} {
		if err := apply(ctx, p, filepath.Join(s.Root, path)); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, p *localplane.Plane, path string) error {
	objects, err := manifests.Read(path)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, p.AdminConfig(), objects, func(*unstructured.Unstructured) {})
}

// serverConfig is the config file of a server.
const serverConfig = `
apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
cluster: {kubeconfig: %s}
webhook:
  address: %s
  certificateFile: %s
  keyFile: %s
  clientCAFile: %s
  allowedClientNames: [kube-apiserver]
metrics: {address: %s}
containment: {nodeScopes: Enabled, quarantines: Enabled, maxQuarantinedNodes: "50%%"}
`

// Run starts a server that follows an API server, and waits until it is ready.
func (s *Setup) Run(ctx context.Context, p *localplane.Plane, to *server.Server, apiServer string) error {
	certificate, key, err := p.ClientCertificate("of-"+filepath.Base(to.Dir()), "node-authorizer")
	if err != nil {
		return err
	}
	if err := to.WriteKubeconfig(apiServer, &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key}); err != nil {
		return err
	}
	config := fmt.Sprintf(serverConfig, to.Kubeconfig(), to.Address, to.File("tls.crt"), to.File("tls.key"), to.File("ca.crt"),
		to.MetricsAddress)
	if err := to.WriteConfig(config); err != nil {
		return err
	}
	return to.Run(ctx, server.Command{Program: s.Program(), Env: server.Environment()})
}
