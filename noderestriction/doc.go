// Package noderestriction decides what a node may write. It checks the object that a
// kubelet creates, updates or deletes, of which the Node authorizer sees only the
// name.
//
// Create a [Restriction] with [New] and call [Restriction.Decide] for each write, or
// use its [Plugin] in an API server that is built on k8s.io/apiserver. Package
// nodestate has a [State] over informers of client-go.
//
// It decides like the NodeRestriction admission plugin in
// kube-apiserver, for every supported minor version and set of feature gates:
//
//   - A node creates its own mirror pods, which must not refer to other API objects,
//     and deletes, evicts and updates the status of pods that are bound to it.
//   - A node writes its own Node, but not its taints, its owners, or labels that
//     control scheduling.
//   - A node writes its own Lease and CSINode, resource slices that name it, and
//     certificate signing requests for its own name.
//   - A node requests service account tokens and pod certificates for pods that are
//     bound to it, for audiences and signers that these pods use or that an
//     authorizer grants.
//   - A node writes only the size in the status of a claim.
//
// Users that are not nodes (package nodeidentity) are not restricted, and neither are
// resources without rules: the authorizers decide whether a node may write these.
//
// Decide answers Allow or Deny. Consider answers a question before the request, as
// far as names and state allow, and lists the checks that depend on the object. A
// refusal has a code, a message that may be shown to the node, and the HTTP status
// with which Kubernetes answers. The state may lag behind the API server; a refusal
// that this could cause is marked Stale, so that the caller can wait and retry.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
// and KEP-279, KEP-2907, KEP-4412, KEP-4317.
package noderestriction
