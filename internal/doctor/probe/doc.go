// Package probe asks a live API server whether it restricts nodes, where the flags of
// kube-apiserver cannot be seen: in clusters that a provider runs.
//
// Nothing in the cluster is changed. A probe sends one or more of
//
//   - SubjectAccessReviews about users that are made up: a node that does not exist, and a user
//     in the same groups whose name is not a node's. An authorizer that knows nodes by their names,
//     and not a role of the group, allows a request that only the first may make.
//   - writes with dryRun=All that impersonate the node that does not exist. Before, a
//     request to the same path is sent with a value of dryRun that does not exist. Its refusal
//     shows that the write is authorized and that dryRun is read, so that it is admission that
//     refuses the write.
//   - requests for tokens that can never be issued, because their expiration is too short. The API
//     server does not read dryRun there. It validates the expiration after NodeRestriction was asked.
//   - reads without any credential.
//
// [Run] returns each probe with all that was sent and answered. Answers to requests for tokens are
// not read when they succeed.
package probe
