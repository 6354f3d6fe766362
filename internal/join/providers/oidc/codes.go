package oidc

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons.
const (
	// IdentityTokenInvalid: the token is malformed, or not signed by the issuer.
	IdentityTokenInvalid verdict.Code = "IdentityTokenInvalid"
	// IdentityTokenExpired: the token has expired, is too old, or is of the future.
	IdentityTokenExpired verdict.Code = "IdentityTokenExpired"
	// WrongIssuer: the token names another issuer.
	WrongIssuer verdict.Code = "WrongIssuer"
	// WrongAudience: the token is for another audience.
	WrongAudience verdict.Code = "WrongAudience"
	// ConditionNotMet: the claims do not meet a condition.
	ConditionNotMet verdict.Code = "ConditionNotMet"
	// ClaimsNotMapped: an expression has no value for the claims, or one of another form.
	ClaimsNotMapped verdict.Code = "ClaimsNotMapped"
)
