package localplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Component is a program of the control plane.
type Component string

// The components, in the order in which they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
)

// Components returns all components in the order in which they start.
func Components() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler}
}

// Authorization selects the part of kube-apiserver that decides about nodes.
type Authorization string

const (
	// InTree is the default of clusters: the Node authorizer, RBAC, and the
	// NodeRestriction admission plugin.
	InTree Authorization = "in-tree"
	// RBACOnly disables the Node authorizer and NodeRestriction. A node has no rights
	// without other authorizers.
	RBACOnly Authorization = "rbac-only"
)

// Options are the settings of a control plane. The zero value is a plane with the in-tree
// authorizers in a temporary folder.
type Options struct {
	// Dir is the folder for the data, certificates, kubeconfigs and logs of the plane. An
	// earlier plane in it is replaced; one that still runs is an error. The default is a
	// temporary folder, which Stop removes.
	Dir string

	// Authorization defaults to InTree. It is unused with AuthorizationConfig.
	Authorization Authorization
	// AuthorizationConfig is the path of an AuthorizationConfiguration file for
	// kube-apiserver, which may have webhooks. NodeRestriction is disabled then, unless the next
	// option is set.
	// kube-controller-manager and kube-scheduler need RBAC in it. Prepare may write it.
	AuthorizationConfig string
	// NodeRestriction keeps the admission plugin enabled with AuthorizationConfig.
	NodeRestriction bool

	// ExtraArgs are appended to the arguments of a component. If a flag is repeated, the
	// last one counts.
	ExtraArgs map[Component][]string
	// FeatureGates are set on every component of Kubernetes except hollow kubelets, which
	// have no flag for them.
	FeatureGates map[string]bool

	// WithoutBootstrapRBAC omits the ClusterRoleBindings that let bootstrap tokens
	// request a node's client certificate and have it approved by
	// kube-controller-manager.
	WithoutBootstrapRBAC bool

	// WithoutControllers omits kube-controller-manager and kube-scheduler, and does not
	// build them. Then no service accounts are created, no garbage is collected, and
	// there are no nodes with a kubelet.
	WithoutControllers bool

	// VerifyKubelets makes kube-apiserver call kubelets by their internal addresses and
	// verify their serving certificates. Only machines ([MachineOptions]) have them.
	VerifyKubelets bool

	// Prepare is called when the plane has its folder, ports and certificates, before any
	// component starts. It can write the files in ExtraArgs and AuthorizationConfig. It
	// may only call methods of the plane that make certificates and take ports.
	Prepare func(p *Plane) error
	// OnAPIServer is called when kube-apiserver answers, before its clients start. It can
	// start a webhook that needs a cluster and that the clients need. The plane can make
	// certificates and clients then, and has no nodes.
	OnAPIServer func(ctx context.Context, p *Plane) error

	// Progress receives a line for each step. It is optional.
	Progress io.Writer
}

// complete checks the options and sets defaults.
func (o Options) complete() (Options, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.AuthorizationConfig != "" {
		if o.Authorization != "" {
			return o, fmt.Errorf("authorization %q and the authorization config %s exclude each other: set one", o.Authorization,
				o.AuthorizationConfig)
		}
		path, err := filepath.Abs(o.AuthorizationConfig)
		if err != nil {
			return o, fmt.Errorf("find the authorization config: %w", err)
		}
		if _, err := os.Stat(path); err != nil && o.Prepare == nil {
			return o, fmt.Errorf("read the authorization config: %w", err)
		}
		o.AuthorizationConfig = path
	} else if o.Authorization == "" {
		o.Authorization = InTree
	}
	if a := o.Authorization; a != "" && a != InTree && a != RBACOnly {
		return o, fmt.Errorf("authorization %q is not known: use %q or %q, or an authorization config", a, InTree, RBACOnly)
	}
	for component := range o.ExtraArgs {
		if !slices.Contains(Components(), component) {
			return o, fmt.Errorf("extra arguments for %q: the components are %v", component, Components())
		}
	}
	return o, nil
}

// programs returns the names of the programs that the plane needs.
func (o Options) programs() []string {
	if o.WithoutControllers {
		return []string{string(Etcd), string(APIServer)}
	}
	return nil
}

// authorizationArgs returns the flags of kube-apiserver for the authorization.
func (o Options) authorizationArgs() []string {
	switch {
	case o.AuthorizationConfig != "":
		plugins := "--disable-admission-plugins=NodeRestriction"
		if o.NodeRestriction {
			plugins = "--enable-admission-plugins=NodeRestriction"
		}
		return []string{"--authorization-config=" + o.AuthorizationConfig, plugins}
	case o.Authorization == RBACOnly:
		return []string{"--authorization-mode=RBAC", "--disable-admission-plugins=NodeRestriction"}
	default:
		return []string{"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"}
	}
}

func (o Options) featureGateArgs() []string {
	if len(o.FeatureGates) == 0 {
		return nil
	}
	var gates []string
	for _, name := range slices.Sorted(maps.Keys(o.FeatureGates)) {
		gates = append(gates, fmt.Sprintf("%s=%t", name, o.FeatureGates[name]))
	}
	return []string{"--feature-gates=" + strings.Join(gates, ",")}
}

// ErrRunning means that a running plane uses the folder.
var ErrRunning = errors.New("a control plane runs there already")
