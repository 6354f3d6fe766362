package containment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/test/e2e/containmentserver"
	"github.com/node-authorizer/node-authorizer/test/e2e/faultproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// root is the folder of the repository.
const root = "../../.."

// apiServers are the names of the folders with the files of the API servers.
var apiServers = [...]string{"apiserver-1", "apiserver-2"}

// world is a control plane with two API servers, each of which has a server beside it.
type world struct {
	*localplane.Plane
	other *localplane.OtherAPIServer
	// servers are the server of the first API server and the server of the other one.
	servers [2]*server.Server
	// admission is the address of the admission webhook, which both servers serve.
	admission *faultproxy.Proxy
	// admin has all rights on the first API server.
	admin *client

	// setup has the files of the API servers and their servers.
	setup *containmentserver.Setup
	// accounts are those that have been made.
	accounts map[string]bool
}

func startWorld(ctx context.Context, dir string) (*world, error) {
	w := &world{accounts: map[string]bool{}, setup: &containmentserver.Setup{
		Root: root, Dir: dir, Scopes: []string{filepath.Join(root, "scopes"), filepath.Join(dir, "scope-of-tests.yaml")}, Quarantines: true,
	}}
	if err := os.WriteFile(w.setup.Scopes[1], []byte(testScope), 0o600); err != nil {
		return w, err
	}
	err := w.setup.Build(ctx)
	if err != nil {
		return w, err
	}
	w.Plane, err = localplane.Start(ctx, localplane.Options{
		AuthorizationConfig: w.setup.AuthorizationConfig(apiServers[0]),
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer: w.setup.Args(apiServers[0]),
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
		if w.servers[i], err = server.New(p, name, filepath.Join(w.setup.Dir, name)); err != nil {
			return err
		}
		addresses = append(addresses, w.servers[i].Address)
	}
	var err error
	if w.admission, err = faultproxy.Listen(addresses...); err != nil {
		return err
	}
	for i, name := range apiServers {
		if err := w.setup.WriteFiles(p, name, w.servers[i].Address, w.admission.Address()); err != nil {
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
	if err := w.setup.Install(ctx, p); err != nil {
		return err
	}
	if err := w.setup.Run(ctx, p, w.servers[0], p.Server()); err != nil {
		return err
	}
	args := append(w.setup.Args(apiServers[1]), "--authorization-config="+w.setup.AuthorizationConfig(apiServers[1]))
	w.other, err = p.AddAPIServer(ctx, "kube-apiserver-2", args...)
	if err != nil {
		return err
	}
	if err := w.setup.Run(ctx, p, w.servers[1], w.other.Server); err != nil {
		return err
	}
	return w.setup.ApplyWebhook(ctx, p, w.admission.Address())
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
