// Package webhook answers an API server's webhooks over HTTP: whether a request
// is authorized (SubjectAccessReview), whether a node may write an object
// (AdmissionReview), and which tolerations a pod gets (AdmissionReview with a
// patch in the answer).
//
// The handlers decode, ask an evaluator and encode; they decide, log and count
// nothing. A question that is well put gets an answer with status 200, also when
// it could not be decided: a SubjectAccessReview then says so in its
// evaluationError and allows nothing. What is no question gets a metav1.Status
// with a status of 4xx and a message that says what is wrong with it.
//
// Sources: https://kubernetes.io/docs/reference/access-authn-authz/webhook/ and
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
package webhook
