// Package admissionpolicy evaluates ValidatingAdmissionPolicies about requests that an attacker
// could send, with the API server's own library.
//
// A policy is decided only if what its CEL reads is known: fields of the objects that the attacker
// or the state fixes, the kind and place of the request, and the name and labels of the
// namespace. Who sends the request, what an authorizer would say, and parameters are not known.
// What the CEL reads is taken from its checked syntax tree.
package admissionpolicy
