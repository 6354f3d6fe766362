// Package nodeauthz is the Node authorizer: it decides what a kubelet may read
// and write, from a table of rules over the relations in a graph.
//
// Create an [Authorizer] with [New] for a graph that you fill, or that informers of
// client-go fill (package nodestate). [Authorizer.Decide] decides a request, and
// [Authorizer.Explain] adds the reason. The Authorizer also implements
// authorizer.Authorizer of k8s.io/apiserver.
//
// It decides like the Node authorizer in kube-apiserver, for every
// supported minor version and set of feature gates:
//
//   - Users that are not nodes (package nodeidentity) get NoOpinion.
//   - Nodes may read the objects to which the graph relates them: objects that their
//     pods need.
//   - Each node may read and write the objects with its own name: its Node, Lease and
//     CSINode.
//   - Lists and watches of pods, resource slices and pod certificate requests
//     are allowed with the field selector spec.nodeName=<node>.
//   - Every node may read a few resources.
//
// It answers Allow or NoOpinion, never Deny, so that a later authorizer can still
// allow. NodeRestriction limits at admission which fields of an object a node may
// write.
//
// Decide takes two look-ups and does not allocate. Explain calls Decide and adds the
// rule, the path or the nearest path, and a hint. Authorize and RulesFor adapt both
// to k8s.io/apiserver.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/node/ and
// KEP-279, KEP-4601.
package nodeauthz
