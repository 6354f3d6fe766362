// Package nodescope decides what a service account may do with a token that is bound to one node,
// according to NodeScopes (package api/policy/v1alpha1).
//
// [Compile] each NodeScope, put the scopes into a [Policy], and create an [Authorizer] with [New].
// [Authorizer.Decide] decides a request, [Authorizer.Explain] adds the reason, [Authorizer.Admit]
// decides a write about which admission knows more than authorization, and [Policy.Passing] lists
// what passes.
//
// The answers:
//
//   - An account in no scope gets NoOpinion, and so do all other users.
//   - A request passes a scope if one rule of the scope matches it. It then gets NoOpinion, never
//     Allow: the authorizers after it decide.
//   - A request that passes no rule is refused with Deny if the scope's mode is Enforce. In the
//     mode Observe it gets NoOpinion, and the answer says what would have been refused.
//   - Of several scopes about an account, a request must pass every one.
//   - Of a create, an authorizer knows no name. Where the name decides, it passes, and
//     Admit decides.
//   - Of versions of groups that kube-apiserver passes on to other API servers ([Aggregation]), nobody asks
//     Admit, and selectors may be ignored. There, only what the path of a request shows lets it pass.
//
// The node of a token is in the extra values of its user; see nodeidentity.TokenNode. A request that
// asks whether a service account may impersonate its own node (KEP-5284) has no node. It passes if the
// scope has asNode, because the API server authorizes the request itself as the node.
//
// Decide allocates nothing for users that are in no scope, and takes no lock of its own.
package nodescope
