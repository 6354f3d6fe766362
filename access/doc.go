// Package access has the question that every authorizer here answers: may this user
// do this?
//
// Fill in a [Request] by hand, or let [FromAttributes] read it from what an API server
// built on k8s.io/apiserver passes to its authorizers; [Request.Attributes] is the way
// back. Packages nodeauthz, rbac and chain decide about it, and noderestriction asks
// its own questions with it.
//
// The attributes are those of a SubjectAccessReview.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#review-your-request-attributes
package access
