// Package review turns SubjectAccessReview documents into requests for
// authorizers and their answers into statuses, the way kube-apiserver does
// before and after it asks an authorizer.
//
// Attributes, Validate and Status are one document's way in and out, whatever
// carries it; Stream evaluates a whole stream of documents in order.
//
// Source: https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/subject-access-review-v1/
// and, for selectors, KEP-4601.
package review
