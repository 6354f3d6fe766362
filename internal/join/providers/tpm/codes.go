package tpm

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons. The registration of machines has others.
const (
	// TPMEvidenceInvalid: the evidence or a structure of the TPM is malformed.
	TPMEvidenceInvalid verdict.Code = "TPMEvidenceInvalid"
	// EKNotAccepted: the endorsement key is weak, or cannot decrypt credentials.
	EKNotAccepted verdict.Code = "EKNotAccepted"
	// EKCertificateInvalid: the certificate is not of the endorsement key.
	EKCertificateInvalid verdict.Code = "EKCertificateInvalid"
	// EKNotTrusted: no configured authority issued the certificate, and the key is not registered.
	EKNotTrusted verdict.Code = "EKNotTrusted"
	// AKNotAccepted: the attestation key is weak, or could sign what is not of the TPM.
	AKNotAccepted verdict.Code = "AKNotAccepted"
	// CredentialNotActivated: the TPM did not decrypt the secret.
	CredentialNotActivated verdict.Code = "CredentialNotActivated"
	// QuoteInvalid: the quote is not of this attestation key, or not about this challenge.
	QuoteInvalid verdict.Code = "QuoteInvalid"
	// PCRsNotAllowed: no policy allows what the machine has booted.
	PCRsNotAllowed verdict.Code = "PCRsNotAllowed"
	// EventLogInvalid: the event log is malformed, or does not give the values of the PCRs.
	EventLogInvalid verdict.Code = "EventLogInvalid"
)
