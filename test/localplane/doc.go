// Package localplane runs a real Kubernetes control plane on this machine: the
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler of a pinned
// version, built from Go modules, and nodes that run the real kubelet code over
// a pretended machine ("hollow" nodes).
//
// A hollow node joins as a real one does: it bootstraps its client certificate
// with a bootstrap token, registers itself, renews its lease, watches its pods,
// reads their Secrets and ConfigMaps, and asks for their service account
// tokens. Only the containers are pretended. So every request that a node
// authorizer or an admission plugin has to judge is the real one.
//
//	plane, err := localplane.Start(ctx, localplane.Options{})
//	if err != nil { ... }
//	defer plane.Stop()
//	node, err := plane.AddNode(ctx, "worker-1", localplane.NodeOptions{})
//
// The plane has its own certificates and listens on ports of 127.0.0.1 that
// nobody else uses; only the port of a hollow kubelet is open on all addresses,
// because its code leaves no choice. All logs are in [Plane.LogDir].
//
// Every process of a plane ends with the process that called [Start]. On Linux
// the kernel sees to that, even if the caller crashes. Elsewhere a crash leaves
// processes behind, which [Down] ends.
//
// The first call of Start on a machine builds the programs, which takes some
// minutes; they are kept in the user's cache directory, by version.
package localplane
