package localplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachineOptions make a hollow node one that handles its certificates as the
// kubelet of a machine in a cloud does. It bootstraps in the background, renews
// its client certificate, asks for a serving certificate when it has addresses
// ([Node.SetAddresses]), and serves its port with it. Somebody has to approve its
// requests for serving certificates: kube-controller-manager does not. It runs no
// static pods.
type MachineOptions struct {
	// Address is the loopback address on which it serves, for example 127.8.0.1.
	Address string
	// ProviderID is what the cloud calls the machine.
	ProviderID string
}

// uninitialized is the taint of nodes that a cloud's controller has not seen.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

func (n *Node) machineArgs(port int, bootstrapKubeconfig string, machine *MachineOptions) []string {
	n.serving = net.JoinHostPort(machine.Address, strconv.Itoa(port))
	return []string{
		"--name=" + n.name,
		"--address=" + machine.Address,
		fmt.Sprintf("--kubelet-port=%d", port),
		"--kubeconfig=" + n.Kubeconfig(),
		"--bootstrap-kubeconfig=" + bootstrapKubeconfig,
		"--cert-dir=" + filepath.Join(n.dir, "pki"),
		"--client-ca-file=" + n.plane.CAFile(),
		"--provider-id=" + machine.ProviderID,
		"--vmodule=remote_runtime=3",
	}
}

// ServingAddress is the host:port on which the kubelet of a machine serves.
func (n *Node) ServingAddress() string { return n.serving }

// SetAddresses does what a cloud's controller does when a node has registered: it
// writes the addresses of the machine into the Node, and takes away the taint of
// nodes that nobody has done this for.
func (n *Node) SetAddresses(ctx context.Context, addresses ...corev1.NodeAddress) error {
	nodes := n.plane.client.CoreV1().Nodes()
	status, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": addresses}})
	if err != nil {
		return fmt.Errorf("write the addresses of node %q: %w", n.name, err)
	}
	// A merge patch replaces the list that the kubelet began with.
	object, err := nodes.Patch(ctx, n.name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("write the addresses of node %q: %w", n.name, err)
	}
	kept := slices.DeleteFunc(object.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == uninitialized })
	spec, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": kept}})
	if err != nil {
		return fmt.Errorf("take the taint %s from node %q: %w", uninitialized, n.name, err)
	}
	if _, err := nodes.Patch(ctx, n.name, types.MergePatchType, spec, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("take the taint %s from node %q: %w", uninitialized, n.name, err)
	}
	return nil
}
