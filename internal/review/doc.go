// Package review turns documents that ask for a decision into requests, and
// decisions into the documents that answer them, the way kube-apiserver does
// before and after it asks.
//
// There are three kinds of documents. A SubjectAccessReview asks an authorizer
// whether somebody may do something; an AdmissionReview asks an admission
// controller about a write, with the object that is to be written; a TokenReview asks
// an authenticator whose a bearer token is.
//
// [DecodeAccessReview], [DecodeAdmission] and [DecodeTokenReview] are one document's
// way in, whatever carries it, and the methods of what they return its way out;
// [Stream] evaluates a whole stream of documents of the first two kinds in order.
//
// Sources: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/,
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/,
// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
// and, for selectors, KEP-4601.
package review
