// Package localplane runs a real Kubernetes control plane on this machine: the etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler of a pinned version, built
// from Go modules, and nodes with the real kubelet code and a fake container runtime
// ("hollow" nodes).
//
// A hollow node joins like a real one: it bootstraps its client certificate with a
// bootstrap token, registers itself, renews its lease, watches its pods, reads their
// Secrets and ConfigMaps, and requests their service account tokens. Only the containers
// are fake. So node authorizers and admission plugins see the real requests.
//
//	plane, err := localplane.Start(ctx, localplane.Options{})
//	if err != nil { ... }
//	defer plane.Stop()
//	node, err := plane.AddNode(ctx, "worker-1", localplane.NodeOptions{})
//
// The plane has its own certificates and listens on unused ports of 127.0.0.1. Only the
// port of a hollow kubelet is open on all addresses, because its code has no option for
// that. All logs are in [Plane.LogDir].
//
// Every process of a plane ends with the process that called [Start]. On Linux the kernel
// ensures that, even if the caller crashes. On other systems a crash leaves processes
// behind, which [Down] stops.
//
// The first call of Start on a machine builds the programs, which takes some minutes.
// They are cached in the user's cache directory, by version.
package localplane
