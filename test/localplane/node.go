package localplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/test/localplane/internal/process"
)

// NodeOptions are the settings of a hollow node. The zero value is a node that bootstraps
// with its own token, and AddNode waits for it.
type NodeOptions struct {
	// Labels are labels that the node sets itself. NodeRestriction allows few in the
	// kubernetes.io namespace.
	Labels map[string]string
	// Taints are taints of the new node, as "key=value:Effect".
	Taints []string
	// BootstrapKubeconfig is the path of the bootstrap kubeconfig. The default is one
	// with a new bootstrap token.
	BootstrapKubeconfig string
	// Credential, if set, is the permanent credential of the node: it does not bootstrap
	// and has no client certificate. It may be an exec credential.
	Credential *clientcmdapi.AuthInfo
	// Machine, if set, makes the node manage its certificates like the kubelet of a
	// machine in a cloud. Taints are ignored then.
	Machine *MachineOptions
	// ExtraArgs are appended to the arguments of kubemark, or of machine-kubelet.
	ExtraArgs []string
	// NoWait makes AddNode return once the process runs. See [Node.WaitReady].
	NoWait bool
}

// Node is a hollow node: one process with the code of the kubelet.
type Node struct {
	name    string
	dir     string
	plane   *Plane
	unit    *unit
	storage *storage
	// serving is the host:port of the kubelet of a machine.
	serving string
}

// AddNode starts a hollow node, which makes its own key, gets its certificate signed, and
// registers. It returns when the node is Ready and has a working storage driver, or an
// error with the cause. A node that is not ready stays in the plane.
func (p *Plane) AddNode(ctx context.Context, name string, options NodeOptions) (*Node, error) {
	node, err := p.makeNode(ctx, name, options)
	if err != nil {
		return nil, fmt.Errorf("add node %q: %w", name, err)
	}
	if options.NoWait {
		err = node.unit.launch()
	} else {
		err = node.unit.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("add node %q: %w", name, err)
	}
	return node, nil
}

func (p *Plane) makeNode(ctx context.Context, name string, options NodeOptions) (*Node, error) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return nil, fmt.Errorf("the name is not valid: %s", strings.Join(problems, "; "))
	}
	dir := p.layout.node(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil, errors.New("there is one of that name; choose another name, or start that node again")
		}
		return nil, err
	}
	port, err := p.reserved.Take()
	if err != nil {
		return nil, err
	}
	bootstrap, err := p.nodeCredential(ctx, name, options)
	if err != nil {
		return nil, err
	}
	node := &Node{name: name, dir: dir, plane: p, storage: newStorage(name)}
	program, args := "kubemark", node.args(port, bootstrap)
	if options.Machine != nil {
		program, args = "machine-kubelet", node.machineArgs(port, bootstrap, options.Machine)
	}
	node.unit = &unit{
		group: p.group,
		spec: process.Spec{
			Name: "node " + name,
			Path: p.binaries.Path(program),
			Args: slices.Concat(args, options.args(), options.ExtraArgs),
			Log:  p.layout.log("node-" + name),
		},
		progress: p.options.Progress,
		started:  node.attachStorage,
		ended:    node.storage.detach,
		ready:    node.ready,
		changed:  p.writeState,
	}
	p.mu.Lock()
	p.nodes = append(p.nodes, node)
	p.mu.Unlock()
	return node, nil
}

// nodeCredential returns the bootstrap kubeconfig of a node. It is empty for a node with
// a permanent kubeconfig.
func (p *Plane) nodeCredential(ctx context.Context, name string, options NodeOptions) (bootstrapKubeconfig string, err error) {
	switch {
	case options.Credential != nil && options.BootstrapKubeconfig != "":
		return "", errors.New("a credential and a bootstrap kubeconfig exclude each other: set one")
	case options.Credential != nil:
		return "", p.writeKubeconfigTo(p.layout.nodeKubeconfig(name), "node", options.Credential)
	case options.BootstrapKubeconfig != "":
		return options.BootstrapKubeconfig, nil
	}
	token, err := p.CreateBootstrapToken(ctx)
	if err != nil {
		return "", err
	}
	return p.TokenKubeconfig("bootstrap-"+name, token)
}

func (n *Node) args(port int, bootstrapKubeconfig string) []string {
	return []string{
		"--morph=kubelet",
		"--name=" + n.name,
		"--kubeconfig=" + n.Kubeconfig(),
		"--bootstrap-kubeconfig=" + bootstrapKubeconfig,
		"--cert-dir=" + filepath.Join(n.dir, "pki"),
		fmt.Sprintf("--kubelet-port=%d", port),
		"--kubelet-read-only-port=0",
		"--use-host-image-service=false",
		// The log line has the socket of the fake container runtime, which kubemark does
		// not remove when it ends.
		"--vmodule=remote_runtime=3",
	}
}

// args returns the arguments of both programs.
func (options NodeOptions) args() []string {
	var args []string
	if len(options.Labels) > 0 {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(options.Labels)) {
			labels = append(labels, key+"="+options.Labels[key])
		}
		args = append(args, "--node-labels="+strings.Join(labels, ","))
	}
	if len(options.Taints) > 0 {
		args = append(args, "--register-with-taints="+strings.Join(options.Taints, ","))
	}
	return args
}

// Nodes returns the nodes in the order in which they were added.
func (p *Plane) Nodes() []*Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.nodes)
}

// Name returns the name of the node.
func (n *Node) Name() string { return n.name }

// Kubeconfig returns the path of the kubeconfig of the node, with its bootstrapped client
// certificate. The file exists once the node has the certificate.
func (n *Node) Kubeconfig() string { return n.plane.layout.nodeKubeconfig(n.name) }

// Config returns a configuration with the node's credentials.
func (n *Node) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", n.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of node %q, which it writes when it has its certificate: %w", n.name, err)
	}
	config.QPS = -1
	return config, nil
}

// StaticPods returns the path of the folder for manifests of static pods. It is empty
// after each start.
func (n *Node) StaticPods() (string, error) {
	if n.serving != "" {
		return "", fmt.Errorf("find the static pods of node %q: a machine runs none", n.name)
	}
	root, err := n.storage.root()
	if err != nil {
		return "", fmt.Errorf("find the static pods of node %q: %w", n.name, err)
	}
	found, err := filepath.Glob(filepath.Join(root, "static-pods*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("find the static pods of node %q: %s holds %d folders for them: %w", n.name, root, len(found),
			errors.Join(err, os.ErrNotExist))
	}
	return found[0], nil
}

// LogFile returns the path of the node's log.
func (n *Node) LogFile() string { return n.unit.spec.Log }

// WaitReady waits until the node is Ready. Use it for nodes added with NoWait.
func (n *Node) WaitReady(ctx context.Context) error { return n.unit.waitReady(ctx) }

// Stop stops the node's process gracefully. Its Node object stays.
func (n *Node) Stop() error { return n.unit.stop() }

// Kill kills the node's process, which simulates a crash.
func (n *Node) Kill() error { return n.unit.kill() }

// Start starts the process again and waits until the node is Ready. It keeps its
// certificate. Its pods are started again, as after a reboot.
func (n *Node) Start(ctx context.Context) error { return n.unit.start(ctx) }

// Restart stops the process gracefully and starts it again.
func (n *Node) Restart(ctx context.Context) error { return n.unit.restart(ctx) }

// Pause freezes the node's process.
func (n *Node) Pause() error { return n.unit.signal(syscall.SIGSTOP) }

// Resume continues a paused node.
func (n *Node) Resume() error { return n.unit.signal(syscall.SIGCONT) }
