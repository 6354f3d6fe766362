// Package review turns documents that ask for a decision into requests, and
// decisions into the documents that answer them, the way kube-apiserver does
// before and after it asks.
//
// There are two kinds of documents. A SubjectAccessReview asks an authorizer
// whether somebody may do something; an AdmissionReview asks an admission
// controller about a write, with the object that is to be written.
//
// [DecodeAccessReview] and [DecodeAdmission] are one document's way in, whatever
// carries it, and the methods of what they return its way out; [Stream]
// evaluates a whole stream of documents in order.
//
// Sources: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/,
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
// and, for selectors, KEP-4601.
package review
