package iam

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of tokens that are refused without a request to STS, in the order of the
// checks. See docs/reference/reasons.
const (
	TokenTooLong                verdict.Code = "TokenTooLong"
	TokenPrefixMissing          verdict.Code = "TokenPrefixMissing"
	TokenEncodingWrong          verdict.Code = "TokenEncodingWrong"
	TokenNotURL                 verdict.Code = "TokenNotURL"
	TokenNotHTTPS               verdict.Code = "TokenNotHTTPS"
	TokenHostNotAllowed         verdict.Code = "TokenHostNotAllowed"
	TokenUserInfo               verdict.Code = "TokenUserInfo"
	TokenPort                   verdict.Code = "TokenPort"
	TokenPath                   verdict.Code = "TokenPath"
	TokenFragment               verdict.Code = "TokenFragment"
	TokenQueryMalformed         verdict.Code = "TokenQueryMalformed"
	TokenParameterTwice         verdict.Code = "TokenParameterTwice"
	TokenParameterInTwoCases    verdict.Code = "TokenParameterInTwoCases"
	TokenParameterEmpty         verdict.Code = "TokenParameterEmpty"
	TokenParameterNotAllowed    verdict.Code = "TokenParameterNotAllowed"
	TokenParameterMissing       verdict.Code = "TokenParameterMissing"
	TokenWrongAction            verdict.Code = "TokenWrongAction"
	TokenWrongVersion           verdict.Code = "TokenWrongVersion"
	TokenWrongAlgorithm         verdict.Code = "TokenWrongAlgorithm"
	TokenSignedHeadersMalformed verdict.Code = "TokenSignedHeadersMalformed"
	TokenClusterNotSigned       verdict.Code = "TokenClusterNotSigned"
	TokenExpiresInvalid         verdict.Code = "TokenExpiresInvalid"
	TokenDateInvalid            verdict.Code = "TokenDateInvalid"
	TokenTooOld                 verdict.Code = "TokenTooOld"
	TokenFromFuture             verdict.Code = "TokenFromFuture"
	TokenCredentialMalformed    verdict.Code = "TokenCredentialMalformed"
	TokenCredentialOtherDay     verdict.Code = "TokenCredentialOtherDay"
	TokenWrongRegion            verdict.Code = "TokenWrongRegion"
	TokenSignatureMalformed     verdict.Code = "TokenSignatureMalformed"
)

// STSRefused is the code of a token that STS rejects.
const STSRefused verdict.Code = "STSRefused"

// The codes of callers that get no user. See docs/reference/reasons.
const (
	CallerMalformed        verdict.Code = "CallerMalformed"
	CallerNotSupported     verdict.Code = "CallerNotSupported"
	CallerOtherPartition   verdict.Code = "CallerOtherPartition"
	AccountMismatch        verdict.Code = "AccountMismatch"
	NotMapped              verdict.Code = "NotMapped"
	MappingUnusable        verdict.Code = "MappingUnusable"
	SessionMissing         verdict.Code = "SessionMissing"
	SessionNotInstance     verdict.Code = "SessionNotInstance"
	SessionInstanceUnknown verdict.Code = "SessionInstanceUnknown"
	SessionInstanceEnded   verdict.Code = "SessionInstanceEnded"
	SessionAccountMismatch verdict.Code = "SessionAccountMismatch"
	SessionOtherVPC        verdict.Code = "SessionOtherVPC"
	SessionRoleMismatch    verdict.Code = "SessionRoleMismatch"
	NameEmpty              verdict.Code = "NameEmpty"
	NameInvalid            verdict.Code = "NameInvalid"
	NameReserved           verdict.Code = "NameReserved"
)
