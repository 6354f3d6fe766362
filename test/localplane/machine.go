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

// MachineOptions make a hollow node manage its certificates like the kubelet of a machine
// in a cloud. It bootstraps in the background, renews its client certificate, requests a
// serving certificate when it has addresses ([Node.SetAddresses]), and serves its port
// with it. Its requests for serving certificates need an approver, because
// kube-controller-manager does not approve them. It runs no static pods.
type MachineOptions struct {
	// Address is the loopback address on which it serves, for example 127.8.0.1.
	Address string
	// ProviderID is the id of the machine in the cloud.
	ProviderID string
}

// uninitialized is the taint of nodes that no cloud controller has initialized.
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

// ServingAddress returns the host:port of the kubelet of a machine.
func (n *Node) ServingAddress() string { return n.serving }

// SetAddresses does what a cloud controller does after a node has registered: it writes
// the addresses of the machine into the Node, and removes the taint of uninitialized
// nodes.
func (n *Node) SetAddresses(ctx context.Context, addresses ...corev1.NodeAddress) error {
	nodes := n.plane.client.CoreV1().Nodes()
	status, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": addresses}})
	if err != nil {
		return fmt.Errorf("write the addresses of node %q: %w", n.name, err)
	}
	// A merge patch replaces the list of addresses of the kubelet.
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
