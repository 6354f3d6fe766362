// Package quarantine decides which requests are refused because their node or their credential is
// quarantined (package api/policy/v1alpha1).
//
// Put the Quarantines into a [Set] with [NewSet]. [Set.Decide] decides a request and [Set.Node]
// answers whether a node is quarantined, for what is not a request to the API server: certificates,
// bootstrap tokens, roles.
//
// The answers:
//
//   - The user of a quarantined node (system:node:NAME) is refused with Deny, and so is every
//     service account whose token is bound to the node or to a pod on it.
//   - Every user with a quarantined credential is refused.
//   - A rule of the Quarantine can let a request pass. It then gets NoOpinion, never Allow.
//   - Others get NoOpinion.
//
// Members of system:masters never reach an authorizer. Watches and execs that are open run on until they
// end.
//
// Decide takes no lock, and allocates nothing for requests that are not quarantined.
package quarantine
