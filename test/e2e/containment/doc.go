// Package containment tests NodeScopes and Quarantines on a real control plane with two API servers. Each
// asks a server of its own before the Node authorizer and RBAC, and both call the same admission webhook.
// The users are real: service accounts with tokens that are bound to pods of two nodes, and nodes with
// certificates. There are no kubelets: nothing runs in the pods.
//
// The tests show that
//
//   - each rule of the NodeScopes in the folder scopes lets a token act for its own node and not for
//     another, and changes nothing in the mode Observe (docs/evidence/containment-matrix.md),
//   - published attacks succeed without a NodeScope, and not with one,
//   - requests by which an attacker would try to get around a NodeScope are refused,
//   - a Quarantine takes effect on all API servers, and survives restarts, and
//   - a flood of objects, or objects that are not valid, changes none of this.
package containment
