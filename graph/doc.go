// Package graph knows which node is related to which object, and by which path.
//
// Make a [Graph] with [New], fill it with the objects of a cluster from informers or
// files, and ask [Graph.HasPath] whether a node reaches an object, [Graph.Path] by which
// path, and [Graph.NodesReaching] which nodes do. Package nodeauthz decides requests
// with it.
//
// A kubelet may read what its pods need. The relations that grant this form a
// graph whose edges point to the node:
//
//	node <- pod <- secret, configmap, serviceaccount, resourceclaim
//	node <- pod <- persistentvolumeclaim <- persistentvolume <- secret
//	node <- volumeattachment, resourceslice, podcertificaterequest
//
// A Graph is filled with Set… and Delete… calls, in any order of arrival, and
// holds at every moment exactly what its objects say: the history that led
// there leaves no trace.
//
// HasPath is the question that every kubelet request asks. It takes one look-up
// and one membership test, whatever the fan-out, allocates nothing and
// takes no lock, because each object keeps the exact set of nodes that reach
// it. Each answer is that of the state before or after any concurrent change,
// never of a state between: a change adds relations before it takes any away.
//
// The other questions (Path, Nearest, Reach, …) are asked by people. They take
// a read lock, allocate, and answer in a deterministic order.
//
// A mirror pod relates only itself to its node: a node can create mirror pods,
// so nothing that they mention may become reachable. Pods that are not bound to
// a node relate nothing. Finished and deleting pods count until they are gone.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/node/
package graph
