package nodeidentity

import (
	"slices"
	"strings"
)

// The keys of the extra values with which an API server describes the credential of a user.
//
// Source: KEP-4193, and
// https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens
const (
	// ExtraNode is the name of the node to which a token is bound, directly or through its pod.
	ExtraNode = "authentication.kubernetes.io/node-name"
	// ExtraNodeUID is the UID of that node.
	ExtraNodeUID = "authentication.kubernetes.io/node-uid"
	// ExtraPod and ExtraPodUID are the pod to which a token is bound.
	ExtraPod    = "authentication.kubernetes.io/pod-name"
	ExtraPodUID = "authentication.kubernetes.io/pod-uid"
	// ExtraCredential is the id of the credential: "X509SHA256=" and the hash of a certificate, or
	// "JTI=" and the id of a token.
	ExtraCredential = "authentication.kubernetes.io/credential-id"
	// ExtraAssociatedNodeKeys has the keys, without values, of a service account that asks whether
	// it may impersonate the node of its token (KEP-5284).
	ExtraAssociatedNodeKeys = "authentication.kubernetes.io/associated-node-keys"
)

// serviceAccountPrefix is the prefix of every service account's user name.
const serviceAccountPrefix = "system:serviceaccount:"

// ServiceAccount returns the namespace and the name of the service account that a user name is of.
func ServiceAccount(user string) (namespace, name string, ok bool) {
	if !strings.HasPrefix(user, serviceAccountPrefix) {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(user[len(serviceAccountPrefix):], ":")
	return namespace, name, ok && namespace != "" && name != ""
}

// ServiceAccountUser returns the user name of a service account.
func ServiceAccountUser(namespace, name string) string {
	return serviceAccountPrefix + namespace + ":" + name
}

// TokenNode returns the node to which the token of a user is bound; empty if it is bound to none. It
// is ambiguous if the extra values name several, or an empty name: only a user that is impersonated
// has such values.
func TokenNode(extra map[string][]string) (node string, ambiguous bool) {
	values, found := extra[ExtraNode]
	switch {
	case !found:
		return "", false
	case len(values) != 1 || values[0] == "":
		return "", true
	}
	return values[0], false
}

// AsksForAssociatedNode reports whether a request with a verb asks whether a service account may
// impersonate the node of its token. Such a request has no extra values but the keys. The request
// itself comes later, as the node.
func AsksForAssociatedNode(verb string, extra map[string][]string) bool {
	return (verb == "impersonate:associated-node" || strings.HasPrefix(verb, "impersonate-on:associated-node:")) &&
		slices.Contains(extra[ExtraAssociatedNodeKeys], ExtraNode)
}
