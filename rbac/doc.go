// Package rbac evaluates Kubernetes role-based access control: which role binding,
// and which rule of its role, allows a request.
//
// A [Policy] holds roles and bindings and is changed one object at a time, from a
// watch or from files. [Policy.Evaluate] answers one [access.Request] and names the
// binding, role, rule and subject that decided; [Policy.Explain] does so for every
// binding that applies to the user; [Policy.RulesFor] lists what a user may do in a
// namespace. [RuleAllows] matches a single rule.
//
// # What is matched
//
// A Policy answers like the RBAC authorizer in kube-apiserver:
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
//   - A service account subject is the user system:serviceaccount:<namespace>:<name>.
//     Its namespace may be left out in a role binding, where it is the binding's, but
//     not in a cluster role binding, where such a subject matches no user.
//   - The API group of a subject or role reference is ignored: the API server checks
//     it when the object is written, not when it is used.
//   - A binding whose role does not exist grants nothing. It is reported as
//     [Unresolved].
//
// # What is not included
//
// Members of the group system:masters are allowed everything by a separate authorizer
// that kube-apiserver puts before all others, without roles or bindings. This package
// gives them only what bindings grant. Escalation checks, which limit who may write
// roles and bindings, belong to admission of those objects.
//
// # Aggregated cluster roles
//
// The API server only ever reads a cluster role's rules; a controller writes the
// rules of an aggregated cluster role. A policy therefore uses the written rules, and
// an aggregated role that the controller has not filled yet grants nothing. Manifests
// have no controller: [ComputeAggregation] fills aggregated cluster roles that state
// no rules.
package rbac
