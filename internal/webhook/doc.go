// Package webhook answers an API server's webhooks over HTTP: whether a request
// is authorized (SubjectAccessReview), whether a node may write an object
// (AdmissionReview), which tolerations a pod gets (AdmissionReview with a patch in
// the answer), and whose a bearer token is (TokenReview).
//
// The handlers decode, ask an evaluator and encode; they decide, log and count
// nothing. A question that is well put gets an answer with status 200, also when
// it could not be decided: a SubjectAccessReview then says so in its
// evaluationError and allows nothing. What is no question gets a metav1.Status
// with a status of 4xx and a message that says what is wrong with it.
//
// Of a token it is different: an answer that it has no user would be a lie when that
// could not be found out. Such a question gets a metav1.Status, with status 429 if it
// is worth another try in a second, which API servers then make, and 503 otherwise.
//
// Sources: https://kubernetes.io/docs/reference/access-authn-authz/webhook/ and
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
package webhook
