// Package webhook answers an API server's webhooks over HTTP: whether a request is
// authorized (SubjectAccessReview), whether a node may write an object (AdmissionReview),
// which tolerations a pod gets (AdmissionReview with a patch in the answer), and which user
// a bearer token authenticates (TokenReview).
//
// The handlers decode, ask an evaluator and encode. They do not decide, log or count. A
// valid review gets status 200, even if it could not be decided: a SubjectAccessReview then
// has an evaluationError and allows nothing. An invalid request gets a metav1.Status with a
// 4xx code and a message that says what is wrong with it.
//
// A TokenReview is different: if the token could not be verified, an answer without a user
// would be wrong. The request then gets a metav1.Status: with code 429 if the API server
// should retry in a second, which it does, and 503 otherwise.
//
// Sources: https://kubernetes.io/docs/reference/access-authn-authz/webhook/ and
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
package webhook
