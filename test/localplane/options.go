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

// Component names one program of the control plane.
type Component string

// The components, in the order in which they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
)

// Components returns all of them in the order in which they start.
func Components() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler}
}

// Authorization says which part of kube-apiserver decides about nodes.
type Authorization string

const (
	// InTree is kube-apiserver as clusters run it: the Node authorizer, RBAC,
	// and the NodeRestriction admission plugin.
	InTree Authorization = "in-tree"
	// RBACOnly leaves out the Node authorizer and NodeRestriction. A node may
	// then do nothing until somebody else allows it.
	RBACOnly Authorization = "rbac-only"
)

// Options of a control plane. The zero value is a plane with the in-tree
// authorizers in a temporary folder.
type Options struct {
	// Dir holds the data, certificates, kubeconfigs and logs of the plane. A
	// plane that ran there before is replaced; one that still runs is an error.
	// Empty means a temporary folder, which Stop removes.
	Dir string

	// Authorization defaults to InTree. It is unused with AuthorizationConfig.
	Authorization Authorization
	// AuthorizationConfig is the path of an AuthorizationConfiguration file for
	// kube-apiserver, which may name webhooks. NodeRestriction is off then.
	// kube-controller-manager and kube-scheduler need RBAC in it. Prepare may
	// write it.
	AuthorizationConfig string

	// ExtraArgs are appended to the arguments of a component; where a flag is
	// given twice, the last one counts.
	ExtraArgs map[Component][]string
	// FeatureGates are set on every component of Kubernetes, but not on hollow
	// kubelets, which have no flag for them.
	FeatureGates map[string]bool

	// WithoutBootstrapRBAC leaves out the ClusterRoleBindings that allow
	// bootstrap tokens to ask for a node's client certificate and have it
	// approved by kube-controller-manager.
	WithoutBootstrapRBAC bool

	// WithoutControllers leaves out kube-controller-manager and kube-scheduler, and
	// builds neither of them. Nobody makes service accounts then, or deletes what has
	// lost its owner; and there are no nodes with a kubelet.
	WithoutControllers bool

	// VerifyKubelets has kube-apiserver call kubelets by their internal addresses
	// and check their serving certificates. Nodes that are no machines
	// ([MachineOptions]) have none.
	VerifyKubelets bool

	// Prepare runs when the plane has its folder, ports and certificates, and
	// before anything is started: the time to write the files that ExtraArgs and
	// AuthorizationConfig name. Of the plane's methods, those that make
	// certificates and take ports work then.
	Prepare func(p *Plane) error
	// OnAPIServer runs when kube-apiserver answers and before the components
	// that are its clients start: the time to start a webhook that needs a
	// cluster and that they need. The plane can make certificates and clients
	// then, and has no nodes yet.
	OnAPIServer func(ctx context.Context, p *Plane) error

	// Progress is told in lines what happens. It may be nil.
	Progress io.Writer
}

// complete checks the options and fills in what is left to choose.
func (o Options) complete() (Options, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.AuthorizationConfig != "" {
		if o.Authorization != "" {
			return o, fmt.Errorf("authorization %q and the authorization config %s exclude each other: name one", o.Authorization, o.AuthorizationConfig)
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

// programs are the names of those that the plane needs.
func (o Options) programs() []string {
	if o.WithoutControllers {
		return []string{string(Etcd), string(APIServer)}
	}
	return nil
}

// authorizationArgs are the flags of kube-apiserver that the choice means.
func (o Options) authorizationArgs() []string {
	switch {
	case o.AuthorizationConfig != "":
		return []string{"--authorization-config=" + o.AuthorizationConfig, "--disable-admission-plugins=NodeRestriction"}
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

// ErrRunning means that the folder belongs to a plane that still runs.
var ErrRunning = errors.New("a control plane runs there already")
