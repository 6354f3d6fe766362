// Package graph stores which node is related to which object, and by which path.
//
// Create a [Graph] with [New] and fill it with the objects of a cluster from
// informers or files. [Graph.HasPath] reports whether a node reaches an object,
// [Graph.Path] returns the path, and [Graph.NodesReaching] returns all nodes that
// reach it. Package nodeauthz decides requests with it.
//
// A kubelet may read what its pods need. The relations that grant this form a
// graph whose edges point to the node:
//
//	node <- pod <- secret, configmap, serviceaccount, resourceclaim
//	node <- pod <- persistentvolumeclaim <- persistentvolume <- secret
//	node <- volumeattachment, resourceslice, podcertificaterequest
//
// A Graph is filled with Set… and Delete… calls, in any order. Its content depends
// only on the current objects, not on their history.
//
// HasPath is called for every kubelet request. It takes one look-up and one
// membership test for any fan-out, allocates nothing and takes no lock, because each
// object keeps the exact set of nodes that reach it. Each answer holds for the state
// before or after a concurrent change, never for a state in between: a change adds
// relations before it removes any.
//
// The other methods (Path, Nearest, Reach, …) are for people. They take a read lock,
// allocate, and return results in a deterministic order.
//
// A mirror pod relates only itself to its node: a node can create mirror pods, so the
// objects that they name must not become reachable. Pods that are not bound to a node
// relate nothing. Finished and terminating pods count until they are deleted.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/node/
package graph
