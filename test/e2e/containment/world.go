package containment

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/faultproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// root is the folder of the repository.
const root = "../../.."

// world is a control plane with two API servers, each of which has a server beside it.
type world struct {
	*localplane.Plane
	other *localplane.OtherAPIServer
	// servers are those of the first API server and of the other one.
	servers [2]*server.Server
	// admission is the address of the admission webhook, which both servers serve.
	admission *faultproxy.Proxy
	// admin has all rights on the first API server.
	admin *client

	dir, program string
	// accounts are those that have been made.
	accounts map[string]bool
}

func startWorld(ctx context.Context, dir string) (*world, error) {
	w := &world{dir: dir, program: filepath.Join(dir, "node-authorizer"), accounts: map[string]bool{}}
	if err := server.Build(ctx, root, w.program); err != nil {
		return w, err
	}
	var err error
	w.Plane, err = localplane.Start(ctx, localplane.Options{
		AuthorizationConfig: w.apiServerFile(0, "authorization.yaml"),
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer: {"--admission-control-config-file=" + w.apiServerFile(0, "admission.yaml")},
			// Nodes have no kubelets, and stay as the tests make them.
			localplane.ControllerManager: {"--controllers=*,-node-lifecycle-controller"},
		},
		Prepare:     w.prepare,
		OnAPIServer: w.serve,
		Progress:    os.Stderr,
	})
	if err != nil {
		return w, err
	}
	return w, w.populate(ctx)
}

// Stop stops everything.
func (w *world) Stop() error {
	var errs []error
	if w.Plane != nil {
		errs = append(errs, w.Plane.Stop())
	}
	if w.admission != nil {
		errs = append(errs, w.admission.Close())
	}
	return errors.Join(errs...)
}

// prepare chooses addresses, and writes the files that the API servers read when they start.
func (w *world) prepare(p *localplane.Plane) error {
	var addresses []string
	for i := range w.servers {
		var err error
		name := fmt.Sprintf("node-authorizer-%d", i+1)
		if w.servers[i], err = server.New(p, name, filepath.Join(w.dir, name)); err != nil {
			return err
		}
		addresses = append(addresses, w.servers[i].Address)
	}
	var err error
	if w.admission, err = faultproxy.Listen(addresses...); err != nil {
		return err
	}
	for i := range w.servers {
		if err := w.writeAPIServerFiles(p, i); err != nil {
			return err
		}
	}
	return nil
}

// serve starts the servers and the other API server.
func (w *world) serve(ctx context.Context, p *localplane.Plane) (err error) {
	w.Plane = p
	if w.admin, err = newClient(p.AdminConfig()); err != nil {
		return err
	}
	err = await.Until(ctx, "there is the namespace default", func(ctx context.Context) error {
		return w.admin.must(ctx, get("/api/v1/namespaces/default"), nil)
	})
	if err != nil {
		return err
	}
	for _, path := range []string{
		"deploy/rbac/role.yaml", "deploy/static-pod/rbac.yaml",
		"deploy/containment/nodescopes.yaml", "deploy/containment/quarantines.yaml", "deploy/containment/role.yaml",
	} {
		if err := w.apply(ctx, filepath.Join(root, path)); err != nil {
			return err
		}
	}
	if err := w.runServer(ctx, 0, p.Server()); err != nil {
		return err
	}
	w.other, err = p.AddAPIServer(ctx, "kube-apiserver-2", "--authorization-config="+w.apiServerFile(1, "authorization.yaml"),
		"--admission-control-config-file="+w.apiServerFile(1, "admission.yaml"))
	if err != nil {
		return err
	}
	if err := w.runServer(ctx, 1, w.other.Server); err != nil {
		return err
	}
	return w.applyWebhook(ctx)
}

func (w *world) apply(ctx context.Context, path string) error {
	objects, err := manifests.Read(path)
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, w.AdminConfig(), objects, func(*unstructured.Unstructured) {})
}

func (w *world) apiServerFile(i int, name string) string {
	return filepath.Join(w.dir, fmt.Sprintf("apiserver-%d", i+1), name)
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

func (w *world) runServer(ctx context.Context, i int, apiServer string) error {
	s := w.servers[i]
	certificate, key, err := w.ClientCertificate(fmt.Sprint("of-server-", i+1), "node-authorizer")
	if err != nil {
		return err
	}
	if err := s.WriteKubeconfig(apiServer, &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key}); err != nil {
		return err
	}
	config := fmt.Sprintf(serverConfig, s.Kubeconfig(), s.Address, s.File("tls.crt"), s.File("tls.key"), s.File("ca.crt"), s.MetricsAddress)
	if err := s.WriteConfig(config); err != nil {
		return err
	}
	return s.Run(ctx, server.Command{Program: w.program, Env: server.Environment()})
}

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

// writeAPIServerFiles writes the files for the flags of one API server. It asks its own server for
// authorization.
func (w *world) writeAPIServerFiles(p *localplane.Plane, i int) error {
	if err := os.MkdirAll(filepath.Dir(w.apiServerFile(i, "")), 0o700); err != nil {
		return err
	}
	certificate, key, err := p.ClientCertificate(fmt.Sprintf("apiserver-%d-to-webhooks", i+1), "kube-apiserver")
	if err != nil {
		return err
	}
	user := &clientcmdapi.AuthInfo{ClientCertificate: certificate, ClientKey: key}
	authorize := w.apiServerFile(i, "authorize.kubeconfig")
	if err := server.WriteKubeconfig(authorize, "https://"+w.servers[i].Address+"/authorize", p.CAFile(), user); err != nil {
		return err
	}
	// The user's name is the host and port of the webhook.
	admission := w.apiServerFile(i, "admission.kubeconfig")
	users := fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: %s\n  user: {client-certificate: %s, client-key: %s}\n",
		w.admission.Address(), certificate, key)
	authorization, err := w.authorizationConfig(authorize)
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		admission:                                users,
		w.apiServerFile(i, "authorization.yaml"): authorization,
		w.apiServerFile(i, "admission.yaml"):     fmt.Sprintf(admissionConfig, admission),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// applyWebhook configures admission.
func (w *world) applyWebhook(ctx context.Context) error {
	authority, err := os.ReadFile(w.CAFile())
	if err != nil {
		return err
	}
	text, err := w.webhookConfig("https://" + w.admission.Address() + "/admit")
	if err != nil {
		return err
	}
	path := filepath.Join(w.dir, "webhook.yaml")
	text = strings.ReplaceAll(text, "CA_BUNDLE", base64.StdEncoding.EncodeToString(authority))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return w.apply(ctx, path)
}

// token returns a client of the first API server with a token.
func (w *world) token(token string) (*client, error) {
	return newClient(w.tokenConfig(token))
}

func (w *world) tokenConfig(token string) *rest.Config {
	config := rest.AnonymousClientConfig(w.AdminConfig())
	config.BearerToken = token
	return config
}

// on returns the configuration for the other API server.
func (w *world) onOther(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = w.other.Server
	return config
}
