// Package access defines the request that every authorizer here decides: may this
// user do this?
//
// Fill in the fields of a [Request], or let [FromAttributes] set them from the
// attributes that an API server built on k8s.io/apiserver passes to its authorizers.
// [Request.Attributes] is the inverse. Packages nodeauthz, rbac and chain decide
// about requests, and noderestriction asks authorizers with them.
//
// The attributes are the attributes of a SubjectAccessReview.
//
// Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#review-your-request-attributes
package access
