package approve

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Reasons for approvals.
const (
	ClientCertificateApproved  verdict.Code = "ClientCertificateApproved"
	RenewalApproved            verdict.Code = "RenewalApproved"
	ServingCertificateApproved verdict.Code = "ServingCertificateApproved"
)

// Reasons for no decision.
const (
	NotOurs        verdict.Code = "NotOurs"
	AlreadyDecided verdict.Code = "AlreadyDecided"
)

// Reasons for denials, in addition to the codes AttestationRevoked and NameTaken of the
// ledger, and NodeQuarantined and CredentialQuarantined of quarantines.
const (
	WrongSigner               verdict.Code = "WrongSigner"
	CSRMalformed              verdict.Code = "CSRMalformed"
	WeakKey                   verdict.Code = "WeakKey"
	WrongSubject              verdict.Code = "WrongSubject"
	ExtensionsNotAllowed      verdict.Code = "ExtensionsNotAllowed"
	SubjectAltNamesNotAllowed verdict.Code = "SubjectAltNamesNotAllowed"
	WrongUsages               verdict.Code = "WrongUsages"
	WrongNodeName             verdict.Code = "WrongNodeName"
	TokenExpired              verdict.Code = "TokenExpired"
	TokenUnknown              verdict.Code = "TokenUnknown"
	KeyNotAttested            verdict.Code = "KeyNotAttested"
	TokenAlreadyUsed          verdict.Code = "TokenAlreadyUsed"
	NotAttested               verdict.Code = "NotAttested"
	AnotherMachinesCredential verdict.Code = "AnotherMachinesCredential"
	AddressNotAttested        verdict.Code = "AddressNotAttested"
	NamesNotVouched           verdict.Code = "NamesNotVouched"
	SelfNodeServerNotAllowed  verdict.Code = "SelfNodeServerNotAllowed"
)

// IsDenial reports whether Decide denies with a code.
func IsDenial(code verdict.Code) bool {
	return slices.ContainsFunc(checks, func(c check) bool { return c.code == code })
}
