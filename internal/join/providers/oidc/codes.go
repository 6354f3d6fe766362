package oidc

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons.
const (
	IdentityTokenInvalid verdict.Code = "IdentityTokenInvalid"
	IdentityTokenExpired verdict.Code = "IdentityTokenExpired"
	WrongIssuer          verdict.Code = "WrongIssuer"
	WrongAudience        verdict.Code = "WrongAudience"
	ConditionNotMet      verdict.Code = "ConditionNotMet"
	ClaimsNotMapped      verdict.Code = "ClaimsNotMapped"
)
