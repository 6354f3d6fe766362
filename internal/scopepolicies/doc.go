// Package scopepolicies writes ValidatingAdmissionPolicies that enforce NodeScopes as far as admission
// can, for API servers that cannot be configured to ask a webhook about authorization.
//
// A policy decides as [nodescope.Authorizer.Admit] does, and may be stricter. Where it cannot, it lets
// pass, and the result says so in [Policy.CannotExpress]: reads, which are not admitted, and what
// depends on the pods of the node.
package scopepolicies
