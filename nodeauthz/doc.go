// Package nodeauthz is the Node authorizer: it decides what a kubelet may read
// and write, from a table of rules over the relations in a graph.
//
// Make an [Authorizer] with [New] from a graph that you fill, and ask
// [Authorizer.Decide], or [Authorizer.Explain] for the reason. The authorizer is also an
// authorizer of k8s.io/apiserver.
//
// Its decisions are those of the Node authorizer in kube-apiserver, for every
// supported minor version and set of feature gates:
//
//   - Users that are not nodes (package nodeidentity) get NoOpinion.
//   - What pods need is readable by the nodes that the graph relates it to.
//   - Each node may read and write what bears its own name: its Node, Lease and
//     CSINode.
//   - Lists and watches of pods, resource slices and pod certificate requests
//     are allowed with the field selector spec.nodeName=<node>.
//   - A few resources are open to every node.
//
// It answers Allow or NoOpinion, never Deny, so that a later authorizer can
// still allow. What of an object a node may write is limited at admission, by
// NodeRestriction.
//
// Decide answers in two look-ups without allocation. Explain calls Decide and
// adds the rule, the path or the nearest path, and a hint. Authorize and
// RulesFor adapt both to k8s.io/apiserver.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/node/ and
// KEP-279, KEP-4601.
package nodeauthz
