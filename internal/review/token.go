package review

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authenticate returns the user of a bearer token. The error is an [*iam.Refusal] if the
// token has no user, an [*iam.Throttled] if the caller should retry soon, and any other error
// if the token could not be verified. It must be safe for concurrent use.
type Authenticate func(ctx context.Context, token string) (*iam.User, error)

// Codes of reviews that get no user, regardless of the token.
const (
	// TokenMissing means that the review has no token.
	TokenMissing verdict.Code = "TokenMissing"
	// AudienceMismatch means that none of the review's audiences is the cluster's.
	AudienceMismatch verdict.Code = "AudienceMismatch"
)

// MaxTokenReview is the maximum size of a TokenReview in bytes. A token comes in a header,
// and kube-apiserver accepts headers of at most 1 MiB.
const MaxTokenReview = 4 << 20

const (
	tokenReviewKind    = "TokenReview"
	tokenReviewVersion = "authentication.k8s.io/v1"
	tokenReviewBeta    = "authentication.k8s.io/v1beta1"
	wantTokenReviews   = tokenReviewKind + " of " + tokenReviewVersion + " or v1beta1"
)

// TokenReview is a request of an API server to authenticate a bearer token.
type TokenReview struct {
	// Token is a secret.
	Token string
	// Audiences are the audiences of which the token must match one; empty if the API
	// server requires none.
	Audiences []string

	apiVersion string
}

// DecodeTokenReview decodes a TokenReview of authentication.k8s.io/v1 or v1beta1, which do not differ. It refuses
// documents larger than [MaxTokenReview].
//
// The error does not contain the token.
func DecodeTokenReview(document []byte) (*TokenReview, error) {
	header, err := check(document, MaxTokenReview, wantTokenReviews,
		metav1.TypeMeta{Kind: tokenReviewKind, APIVersion: tokenReviewVersion},
		metav1.TypeMeta{Kind: tokenReviewKind, APIVersion: tokenReviewBeta})
	if err != nil {
		return nil, err
	}
	var in struct {
		Spec struct {
			Token     string   `json:"token"`
			Audiences []string `json:"audiences"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(document, &in, syntax()); err != nil {
		return nil, strictjson.Explain(err)
	}
	return &TokenReview{Token: in.Spec.Token, Audiences: in.Spec.Audiences, apiVersion: header.APIVersion}, nil
}

// For returns the audiences that the review and ours have in common. It returns none if
// either list is empty; the API server then uses its own audiences. It returns a refusal if
// both lists have entries but none in common, or if the review has no token.
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
		return nil, iam.Refuse(
			AudienceMismatch, "the token is wanted for the audiences %q, and these authenticate for %q", r.Audiences, ours,
		)
	}
	return common, nil
}

// Authentication is the answer to a TokenReview: a user, or why there is none.
type Authentication struct {
	// User is the user of the token; nil without one.
	User *iam.User
	// Audiences are the audiences of the review for which the token is valid. If empty,
	// the API server uses its own audiences.
	Audiences []string
	// Refusal is why there is no user.
	Refusal *iam.Refusal
}

// tokenStatus is the same in both versions.
type tokenStatus struct {
	Authenticated bool      `json:"authenticated"`
	User          *userInfo `json:"user,omitzero"`
	Audiences     []string  `json:"audiences,omitempty"`
	Error         string    `json:"error,omitempty"`
}

// Answer returns the response document: a TokenReview with only a status, in the version of
// the request.
func (r *TokenReview) Answer(a Authentication) []byte {
	var status tokenStatus
	switch {
	case a.Refusal != nil:
		status.Error = a.Refusal.Error()
	case a.User == nil || a.User.Username == "":
		status.Error = "the token has no user"
	default:
		u := a.User
		status = tokenStatus{Authenticated: true, User: &userInfo{u.Username, u.UID, u.Groups, u.Extra}, Audiences: a.Audiences}
	}
	return encode(&statusDocument[tokenStatus]{tokenReviewKind, r.apiVersion, status})
}
