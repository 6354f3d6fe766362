// Package authentication tests nodes that authenticate with AWS IAM tokens, on a real
// control plane: kube-apiserver sends TokenReviews to node-authorizer, kubelets run
// `node-authorizer token` for theirs, and AWS is internal/fakeaws, which is reached
// through TLS and a proxy, under the names that AWS has.
package authentication
