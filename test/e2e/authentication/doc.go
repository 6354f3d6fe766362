// Package authentication tests nodes that authenticate with AWS IAM tokens, on a real
// control plane: kube-apiserver sends TokenReviews to node-authorizer, kubelets run
// `node-authorizer token`, and AWS is internal/testing/fakeaws, behind TLS and a proxy, under
// AWS's host names.
package authentication
