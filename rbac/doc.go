// Package rbac evaluates Kubernetes role-based access control: which role
// binding, and which rule of its role, lets a user do what was asked.
//
// A [Policy] holds roles and bindings and is changed one object at a time, from
// a watch or from files. [Policy.Evaluate] answers one [access.Request] and names the
// binding, role, rule and subject that decided; [Policy.Explain] says the same
// of every binding that applies to the user; [Policy.RulesFor] lists what a
// user may do in a namespace. [RuleAllows] matches a single rule.
//
// # What is matched
//
// The answers are those of the RBAC authorizer in kube-apiserver:
//
//   - RBAC only adds. A request is allowed by the first rule that covers it and
//     is otherwise left without an opinion; nothing is ever denied.
//   - A cluster role binding applies everywhere. A role binding applies to
//     requests that carry its namespace, and may refer to a role of that
//     namespace or to a cluster role.
//   - A rule covers a resource request if its verbs, API groups, resources and
//     resource names all do. "*" covers any verb, group or resource. A resource
//     is named "pods", its subresource "pods/log"; "*/scale" covers the scale
//     subresource of everything; "pods" does not cover "pods/log". A rule with
//     resource names covers only requests that carry one of these names, so
//     never a create or a list without a name.
//   - A rule covers a non-resource request if its verbs and URLs do. A URL is
//     exact, or a prefix if it ends in "*".
//   - A service account subject is the user
//     system:serviceaccount:<namespace>:<name>. Its namespace may be left out in
//     a role binding, where it is the binding's, and not in a cluster role
//     binding, where such a subject is nobody.
//   - The API group of a subject or role reference is not looked at: the API
//     server checks it when the object is written, not when it is used.
//   - A binding whose role does not exist grants nothing. It is reported as
//     [Unresolved].
//
// # What is not here
//
// The group system:masters is allowed everything by an authorizer of its own
// that kube-apiserver puts before all others; no role or binding takes part, so
// this package gives its members only what bindings grant. Escalation checks,
// which limit who may write roles and bindings, belong to admission of those
// objects.
//
// # Aggregated cluster roles
//
// The API server only ever reads a cluster role's rules; a controller writes
// the rules of an aggregated cluster role. A policy therefore takes the rules as
// they are written, and an aggregated role that the controller has not filled
// yet grants nothing. Manifests have no controller: [ComputeAggregation] fills
// aggregated cluster roles that state no rules.
package rbac
