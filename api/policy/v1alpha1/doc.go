// Package v1alpha1 has the custom resources of policy.node-authorizer.io/v1alpha1, which limit
// what credentials on a node may do.
//
// A [NodeScope] names service accounts whose tokens act for their own node only. A
// [Quarantine] cuts off a node, or one credential.
package v1alpha1
