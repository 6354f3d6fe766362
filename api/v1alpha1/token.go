package v1alpha1

import "strings"

// The users of bootstrap tokens in the API server.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
const (
	// TokenGroup is the group of users with tokens of the ledger, in addition to
	// system:bootstrappers.
	TokenGroup = "system:bootstrappers:node-authorizer"

	// TokenIDLength is the length of the public half of a token, and TokenAlphabet the
	// characters of both halves.
	TokenIDLength = 6
	TokenAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

	tokenUserPrefix = "system:bootstrap:"
)

// TokenUser returns the user name of a token.
func TokenUser(id string) string { return tokenUserPrefix + id }

// TokenIDOf returns the token that a user authenticated with.
func TokenIDOf(user string) (id string, ok bool) {
	id, ok = strings.CutPrefix(user, tokenUserPrefix)
	return id, ok && IsTokenID(id)
}

// IsTokenID reports whether a text can be the public half of a token.
func IsTokenID(id string) bool {
	return len(id) == TokenIDLength && strings.Trim(id, TokenAlphabet) == ""
}
