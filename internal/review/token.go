package review

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/badjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authenticate finds out whose a bearer token is. The error is an [*iam.Refusal]
// if the token gets no user, an [*iam.Throttled] if it is worth another try soon,
// and any other error if it could not be found out. It must be safe for concurrent
// use.
type Authenticate func(ctx context.Context, token string) (*iam.User, error)

// Why a review gets no user, whatever its token is.
const (
	// TokenMissing means that the review has no token.
	TokenMissing verdict.Code = "TokenMissing"
	// AudienceMismatch means that the review is for audiences that are not the
	// cluster's.
	AudienceMismatch verdict.Code = "AudienceMismatch"
)

// MaxTokenReview is the size in bytes beyond which a TokenReview is refused. A
// token comes in a header, and kube-apiserver takes headers of up to 1 MiB.
const MaxTokenReview = 4 << 20

const (
	tokenReviewKind    = "TokenReview"
	tokenReviewVersion = "authentication.k8s.io/v1"
	tokenReviewBeta    = "authentication.k8s.io/v1beta1"
	wantTokenReviews   = tokenReviewKind + " of " + tokenReviewVersion + " or v1beta1"
)

// TokenReview is a bearer token that an API server asks about.
type TokenReview struct {
	// Token is a secret.
	Token string
	// Audiences are those of which the token has to be for one; empty if the API
	// server has no such wish.
	Audiences []string

	apiVersion string
}

// DecodeTokenReview reads one TokenReview of authentication.k8s.io, v1 or v1beta1.
// Field names are case-sensitive and unknown fields are ignored, as in
// kube-apiserver, which also takes the last of repeated names. What is larger than
// [MaxTokenReview] or nested more than [MaxDepth] deep is refused.
//
// The error says what is wrong with the document, and nothing of what is in it.
func DecodeTokenReview(document []byte) (*TokenReview, error) {
	if len(document) > MaxTokenReview {
		return nil, fmt.Errorf("larger than %d bytes", MaxTokenReview)
	}
	if err := checkLimits(document); err != nil {
		return nil, err
	}
	var in tokenReview
	decodeErr := json.Unmarshal(document, &in, asKubernetes())
	if in.Kind != tokenReviewKind || in.APIVersion != tokenReviewVersion && in.APIVersion != tokenReviewBeta {
		if header, ok := readHeader(document); ok {
			return nil, &kindError{header, wantTokenReviews}
		}
	}
	if decodeErr != nil {
		return nil, badjson.Explain(decodeErr)
	}
	return &TokenReview{Token: in.Spec.Token, Audiences: in.Spec.Audiences, apiVersion: in.APIVersion}, nil
}

// tokenReview is the same in both versions.
type tokenReview struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Spec       struct {
		Token     string   `json:"token"`
		Audiences []string `json:"audiences"`
	} `json:"spec"`
}

// For finds out which of the review's audiences are ours: none if it names none, or
// if we have none, so that it is for the API server to say whom the token is for.
// The refusal is nil unless it names audiences and none of ours is among them, or
// it has no token.
func (r *TokenReview) For(ours []string) ([]string, *iam.Refusal) {
	if r.Token == "" {
		return nil, iam.Refuse(TokenMissing, "the review has no token")
	}
	if len(ours) == 0 || len(r.Audiences) == 0 {
		return nil, nil
	}
	var common []string
	for _, audience := range r.Audiences {
		if slices.Contains(ours, audience) && !slices.Contains(common, audience) {
			common = append(common, audience)
		}
	}
	if len(common) == 0 {
		return nil, iam.Refuse(AudienceMismatch, "the token is wanted for the audiences %q, and these authenticate for %q", r.Audiences, ours)
	}
	return common, nil
}

// Authentication is the answer to a TokenReview: a user, or why there is none.
type Authentication struct {
	// User is nil if the token gets none.
	User *iam.User
	// Audiences are those of the review that the token is good for. None leaves it to
	// the API server: the token is good for its own.
	Audiences []string
	// Refusal is why there is no user.
	Refusal *iam.Refusal
}

// noUser stands for the reason that is not given.
const noUser = "the token has no user"

// Answer returns the document that answers the review, a TokenReview with nothing
// but a status, in the version asked.
func (r *TokenReview) Answer(a Authentication) []byte {
	switch {
	case a.Refusal != nil:
		return r.refuse(a.Refusal.Error())
	case a.User == nil || a.User.Username == "":
		return r.refuse(noUser)
	}
	return r.authenticated(a.User, a.Audiences)
}
