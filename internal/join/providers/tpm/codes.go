package tpm

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons. The registration of machines has others.
const (
	TPMEvidenceInvalid     verdict.Code = "TPMEvidenceInvalid"
	EKNotAccepted          verdict.Code = "EKNotAccepted"
	EKCertificateInvalid   verdict.Code = "EKCertificateInvalid"
	EKNotTrusted           verdict.Code = "EKNotTrusted"
	AKNotAccepted          verdict.Code = "AKNotAccepted"
	CredentialNotActivated verdict.Code = "CredentialNotActivated"
	QuoteInvalid           verdict.Code = "QuoteInvalid"
	PCRsNotAllowed         verdict.Code = "PCRsNotAllowed"
	EventLogInvalid        verdict.Code = "EventLogInvalid"
)
