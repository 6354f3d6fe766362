// Package review converts review documents to requests, and decisions to response documents,
// as kube-apiserver does.
//
// There are three kinds of documents. A SubjectAccessReview asks an authorizer whether a
// user may do something. An AdmissionReview asks an admission controller about a write, with
// the object to be written. A TokenReview asks an authenticator for the user of a bearer
// token.
//
// [DecodeAccessReview], [DecodeAdmission] and [DecodeTokenReview] decode one document. The methods of their results
// encode the response. [Stream] evaluates a stream of
// SubjectAccessReviews and AdmissionReviews in order.
//
// Sources: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/,
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/,
// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/
// and, for selectors, KEP-4601.
package review
