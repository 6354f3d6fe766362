package iam

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of tokens that are refused without a request to STS, in the order of the
// checks. See docs/reference/reasons.
const (
	// TokenTooLong: the token has more than [MaxToken] bytes.
	TokenTooLong verdict.Code = "TokenTooLong"
	// TokenPrefixMissing: the token does not begin with [TokenPrefix].
	TokenPrefixMissing verdict.Code = "TokenPrefixMissing"
	// TokenEncodingWrong: the rest is not canonical base64url without padding.
	TokenEncodingWrong verdict.Code = "TokenEncodingWrong"
	// TokenNotURL: the decoded text has bytes that a URL cannot have.
	TokenNotURL verdict.Code = "TokenNotURL"
	// TokenNotHTTPS: the URL is not for HTTPS.
	TokenNotHTTPS verdict.Code = "TokenNotHTTPS"
	// TokenHostNotAllowed: the URL's host is not an allowed host of STS.
	TokenHostNotAllowed verdict.Code = "TokenHostNotAllowed"
	// TokenUserInfo: the URL has a user before its host.
	TokenUserInfo verdict.Code = "TokenUserInfo"
	// TokenPort: the URL has a port.
	TokenPort verdict.Code = "TokenPort"
	// TokenPath: the URL's path is not "/".
	TokenPath verdict.Code = "TokenPath"
	// TokenFragment: the URL has a fragment.
	TokenFragment verdict.Code = "TokenFragment"
	// TokenQueryMalformed: the URL's query is ambiguous or malformed.
	TokenQueryMalformed verdict.Code = "TokenQueryMalformed"
	// TokenParameterTwice: a parameter is repeated.
	TokenParameterTwice verdict.Code = "TokenParameterTwice"
	// TokenParameterInTwoCases: a parameter is repeated with other letter case.
	TokenParameterInTwoCases verdict.Code = "TokenParameterInTwoCases"
	// TokenParameterEmpty: a parameter has no value.
	TokenParameterEmpty verdict.Code = "TokenParameterEmpty"
	// TokenParameterNotAllowed: there is a parameter that tokens do not have.
	TokenParameterNotAllowed verdict.Code = "TokenParameterNotAllowed"
	// TokenParameterMissing: a parameter is missing.
	TokenParameterMissing verdict.Code = "TokenParameterMissing"
	// TokenWrongAction: the request is not GetCallerIdentity.
	TokenWrongAction verdict.Code = "TokenWrongAction"
	// TokenWrongVersion: the request is for another version of STS's API.
	TokenWrongVersion verdict.Code = "TokenWrongVersion"
	// TokenWrongAlgorithm: the request is not signed with AWS4-HMAC-SHA256.
	TokenWrongAlgorithm verdict.Code = "TokenWrongAlgorithm"
	// TokenSignedHeadersMalformed: the signed headers are no list of header names.
	TokenSignedHeadersMalformed verdict.Code = "TokenSignedHeadersMalformed"
	// TokenClusterNotSigned: [ClusterHeader] is not among the signed headers.
	TokenClusterNotSigned verdict.Code = "TokenClusterNotSigned"
	// TokenExpiresInvalid: X-Amz-Expires is not a number of seconds from 0 to 900.
	TokenExpiresInvalid verdict.Code = "TokenExpiresInvalid"
	// TokenDateInvalid: X-Amz-Date is not a time as YYYYMMDDThhmmssZ.
	TokenDateInvalid verdict.Code = "TokenDateInvalid"
	// TokenTooOld: the token was signed longer than [TokenLife] ago.
	TokenTooOld verdict.Code = "TokenTooOld"
	// TokenFromFuture: the token is signed for a time in the future.
	TokenFromFuture verdict.Code = "TokenFromFuture"
	// TokenCredentialMalformed: X-Amz-Credential does not have the form of a request to STS.
	TokenCredentialMalformed verdict.Code = "TokenCredentialMalformed"
	// TokenCredentialOtherDay: X-Amz-Credential and X-Amz-Date are of two days.
	TokenCredentialOtherDay verdict.Code = "TokenCredentialOtherDay"
	// TokenWrongRegion: the token is signed for a region that its host does not serve.
	TokenWrongRegion verdict.Code = "TokenWrongRegion"
	// TokenSignatureMalformed: X-Amz-Signature is not 64 hexadecimal digits.
	TokenSignatureMalformed verdict.Code = "TokenSignatureMalformed"
)

// STSRefused is the code of a token that STS rejects.
const STSRefused verdict.Code = "STSRefused"

// The codes of callers that get no user. See docs/reference/reasons.
const (
	// CallerMalformed: the fields in STS's answer do not match each other.
	CallerMalformed verdict.Code = "CallerMalformed"
	// CallerNotSupported: the caller is not a user, role, federated user or root.
	CallerNotSupported verdict.Code = "CallerNotSupported"
	// CallerOtherPartition: the caller is in another partition of AWS.
	CallerOtherPartition verdict.Code = "CallerOtherPartition"
	// AccountMismatch: the caller's ARN and account differ.
	AccountMismatch verdict.Code = "AccountMismatch"
	// NotMapped: no mapping matches the caller.
	NotMapped verdict.Code = "NotMapped"
	// MappingUnusable: the entry for the caller is invalid.
	MappingUnusable verdict.Code = "MappingUnusable"
	// SessionMissing: the mapping needs a session, and the caller has none.
	SessionMissing verdict.Code = "SessionMissing"
	// SessionNotInstance: the session's name is not the id of an instance.
	SessionNotInstance verdict.Code = "SessionNotInstance"
	// SessionInstanceUnknown: there is no instance with the session's name.
	SessionInstanceUnknown verdict.Code = "SessionInstanceUnknown"
	// SessionInstanceEnded: the instance with the session's name does not run.
	SessionInstanceEnded verdict.Code = "SessionInstanceEnded"
	// SessionAccountMismatch: the instance with the session's name is in another account.
	SessionAccountMismatch verdict.Code = "SessionAccountMismatch"
	// SessionOtherVPC: the instance with the session's name is in a VPC without nodes.
	SessionOtherVPC verdict.Code = "SessionOtherVPC"
	// SessionRoleMismatch: the instance with the session's name has another role.
	SessionRoleMismatch verdict.Code = "SessionRoleMismatch"
	// NameEmpty: the mapping gives an empty name.
	NameEmpty verdict.Code = "NameEmpty"
	// NameInvalid: the mapping gives a name that Kubernetes does not accept.
	NameInvalid verdict.Code = "NameInvalid"
	// NameReserved: the mapping gives a name that is reserved for Kubernetes.
	NameReserved verdict.Code = "NameReserved"
)
