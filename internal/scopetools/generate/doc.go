// Package generate reads NodeScopes, and writes what enforces them on API servers: ValidatingAdmissionPolicies,
// and the configuration with which an API server asks this server about their accounts, and about quarantines.
//
// A policy decides as [nodescope.Authorizer.Admit] does, and may be stricter. Where it cannot, it lets
// pass, and the result says so in [Policy.CannotExpress]: reads, which are not admitted, and what
// depends on the pods of the node.
//
// Match conditions of webhooks send only the requests concerned. They are expressions in CEL, which an API
// server evaluates for every request, and which have a largest size. [Options.Selection] says how
// exactly they select: by account, by namespace, or all service accounts. A selection that is
// wider than the scopes changes no answer: the server has no opinion about other accounts.
package generate
