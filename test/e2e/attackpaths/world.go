package attackpaths

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/admissionpolicy"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// The nodes with a hollow kubelet.
const (
	web1 = "web-1"
	pay1 = "pay-1"
)

// world is a control plane that cases share, one after the other.
type world struct {
	*localplane.Plane
	admin *client
	// minor is the behaviour of Kubernetes that the API server emulates.
	minor kubeversion.Minor
	// baseline is every object that a reset keeps, by path.
	baseline map[string]object
	// applied are the paths of the objects of the last case.
	applied map[string]bool
	// hasPolicies is true if the last case has admission policies.
	hasPolicies bool
	// scopes is true if the API server asks about NodeScopes, and enforced the number of NodeScopes of the case.
	scopes   bool
	enforced int
	// allServed has the resources that the API server serves, without custom kinds.
	allServed []served
	// tokens are those that were made before their namespace terminates, by the path of the pod or account.
	tokens  map[string]string
	counter atomic.Int64
}

// startWorld starts a control plane with hollow nodes. The garbage collector does not run,
// because pods of cases have owners that do not exist, and a reset empties namespaces itself: the
// controller would do so some seconds later, when there is another of the same name.
func startWorld(ctx context.Context) (*world, error) {
	return start(ctx, kubeversion.Latest, []string{web1, pay1}, localplane.Options{
		ExtraArgs: map[localplane.Component][]string{
			localplane.ControllerManager: {
				"--controllers=*,-garbage-collector-controller,-namespace-controller", "--pvclaimbinder-sync-period=1s",
			},
		},
	})
}

// startEmulated starts an API server that emulates an older minor, without controllers and
// nodes.
func startEmulated(ctx context.Context, minor kubeversion.Minor) (*world, error) {
	return start(ctx, minor, nil, localplane.Options{
		WithoutControllers: true,
		ExtraArgs: map[localplane.Component][]string{
			localplane.APIServer: {"--emulated-version=" + minor.String()},
		},
	})
}

func start(ctx context.Context, minor kubeversion.Minor, nodes []string, options localplane.Options) (*world, error) {
	options.Progress = os.Stderr
	plane, err := localplane.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &world{Plane: plane, minor: minor}
	return w, w.populate(ctx, nodes)
}

func (w *world) populate(ctx context.Context, names []string) error {
	var err error
	if w.admin, err = newClient(w.AdminConfig()); err != nil {
		return err
	}
	var adding errgroup.Group
	for _, name := range names {
		adding.Go(func() error {
			_, err := w.AddNode(ctx, name, localplane.NodeOptions{})
			return err
		})
	}
	if err := adding.Wait(); err != nil {
		return err
	}
	// The bootstrap tokens of the nodes belong to no case.
	for _, o := range w.list(ctx, secrets) {
		if err := w.admin.delete(ctx, o.path, nil).failure(); err != nil {
			return err
		}
	}
	if err := w.makeNamespace(ctx, "default"); err != nil {
		return err
	}
	return w.remember(ctx)
}

// graph reads the cluster and makes the engine's graph, as the command does.
func (w *world) graph(ctx context.Context, eks bool, users ...attackpaths.Identity) (*attackpaths.Graph, error) {
	state, err := source.List(ctx, w.AdminConfig(), source.LiveOptions{Inventory: true})
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	if missing := state.Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("read the cluster: %v is missing", missing)
	}
	for _, p := range state.Inventory.Pods() {
		p.Pending, p.Running = false, false // kubelets start pods at any moment, and answers about these would depend on it
	}
	evaluator, err := evaluate.New(ctx, state, evaluate.Options{Features: kubeversion.For(w.minor)})
	if err != nil {
		return nil, err
	}
	served := map[[2]string]bool{}
	for _, r := range state.Resources {
		served[[2]string{r.Group, r.Name}] = true
	}
	var policy *nodescope.Policy
	if evaluator.Scopes != nil {
		policy = evaluator.Scopes.Policy()
	}
	return attackpaths.New(&attackpaths.Cluster{
		Inventory: state.Inventory, Relations: state.Graph, RBAC: state.RBAC, Features: evaluator.Features, Users: users, EKS: eks,
		Policies: admissionpolicy.New(), NodeScopes: policy,
		Audiences: func(namespace, name string) ([]string, bool) {
			pod, ok := state.Pod(namespace, name)
			if !ok {
				return nil, true
			}
			return evaluator.Restriction.Audiences(pod)
		},
		Serves: func(group, resource string) bool { return served[[2]string{group, resource}] },
	})
}

// nodeClient returns a client with a node's credential: the certificate of its hollow kubelet, or, for a
// node without one, a certificate as the signer of kubelets' certificates would make it.
func (w *world) nodeClient(name string) (*client, error) {
	for _, n := range w.Nodes() {
		if n.Name() == name {
			config, err := n.Config()
			if err != nil {
				return nil, err
			}
			return newClient(config)
		}
	}
	return w.certificateClient("system:node:"+name, "system:nodes")
}

// certificateClient returns a client with a certificate that the plane's authority signs.
func (w *world) certificateClient(user string, groups ...string) (*client, error) {
	certFile, keyFile, err := w.ClientCertificate(fmt.Sprint("identity-", w.counter.Add(1)), user, groups...)
	if err != nil {
		return nil, err
	}
	certificate, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	config, err := forCertificate(w.AdminConfig(), certificate, key)
	if err != nil {
		return nil, err
	}
	return newClient(config)
}

func (w *world) tokenClient(token string) (*client, error) {
	return newClient(forToken(w.AdminConfig(), token))
}

// hasKubelet reports whether a node has a hollow kubelet.
func (w *world) hasKubelet(name string) bool {
	return slices.ContainsFunc(w.Nodes(), func(n *localplane.Node) bool { return n.Name() == name })
}
