package oidc

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// audiencePrefix is the first part of an audience that a machine chooses.
const audiencePrefix = "node-authorizer"

// Audience returns the audience that a machine chooses: "node-authorizer/CLUSTER/CHALLENGE", and
// "/sha256:HASH" of its public key if it has one already.
func Audience(clusterID string, about attest.Binding) string {
	parts := []string{audiencePrefix, clusterID, about.Challenge}
	if about.PublicKey != "" {
		parts = append(parts, about.PublicKey)
	}
	return strings.Join(parts, "/")
}

// audience checks the audience of a token, which must be the only one, and returns the public
// key in it.
func (a *Attestor) audience(of []string) (publicKey string, err error) {
	if len(of) != 1 {
		return "", attest.Refuse(WrongAudience, "the token has %d audiences, want one", len(of))
	}
	if a.options.ClusterID == "" {
		if !slices.Contains(a.options.Audiences, of[0]) {
			return "", attest.Refuse(WrongAudience, "the token is for %.253q", of[0])
		}
		return "", nil
	}
	parts := strings.Split(of[0], "/")
	switch {
	case len(parts) < 3 || len(parts) > 4 || parts[0] != audiencePrefix || parts[1] != a.options.ClusterID:
		return "", attest.Refuse(WrongAudience, "the token is for %.253q, want %s/%s/CHALLENGE", of[0], audiencePrefix, a.options.ClusterID)
	case len(parts) == 4 && !v1alpha1.IsPublicKeyHash(parts[3]):
		return "", attest.Refuse(WrongAudience, "the audience of the token ends with %.100q, want the hash of a public key", parts[3])
	case len(parts) == 4:
		publicKey = parts[3]
	}
	if err := a.options.Challenger.Check(parts[2]); err != nil {
		return "", attest.Refuse(attest.ChallengeInvalid, "the challenge in the audience of the token: %s", err)
	}
	return publicKey, nil
}
