// Package noderestriction decides what a node may write: it looks into the
// object that a kubelet creates, updates or deletes, where the Node authorizer
// sees only its name.
//
// Make a [Restriction] with [New] and put each write to [Restriction.Decide], or give
// its [Plugin] to an API server that is built on k8s.io/apiserver.
//
// Its decisions are those of the NodeRestriction admission plugin in
// kube-apiserver, for every supported minor version and set of feature gates:
//
//   - A node creates mirror pods of its own, which refer to nothing else in the
//     API, and deletes, evicts and reports the status of pods that are bound to
//     it.
//   - A node writes its own Node, but not its taints, its owners, or labels that
//     say where work may be placed.
//   - A node writes its own Lease and CSINode, resource slices that name it, and
//     certificate signing requests for its own name.
//   - A node asks for service account tokens and pod certificates of pods that
//     are bound to it, for audiences and signers that these pods use or that an
//     authorizer grants.
//   - Of a claim, a node writes the status of its size.
//
// Users that are not nodes (package nodeidentity) are not restricted, and
// neither are resources that the rules do not name: whether a node may write
// these at all is for the authorizers to say.
//
// Decide answers Allow or Deny. Consider answers a question that comes before the
// request, as far as names and state decide it, and lists the checks that depend on the
// object. A refusal has a code, a message that may be
// shown to the node, and the HTTP status with which Kubernetes answers. What is
// known of the cluster may lag behind the API server; a refusal that this could
// explain is marked Stale, so that the caller can wait and ask again.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
// and KEP-279, KEP-2907, KEP-4412, KEP-4317.
package noderestriction
