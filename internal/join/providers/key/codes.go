package key

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons. Others are of packages attest, machines and alwaysallow.
const (
	// KeyNotAccepted: the key is too weak, or of another kind.
	KeyNotAccepted verdict.Code = "KeyNotAccepted"
	// SignatureInvalid: the signature is not of the key, or not about this request.
	SignatureInvalid verdict.Code = "SignatureInvalid"
	// CertificateNotTrusted: the certificate is not valid, or not of a configured authority.
	CertificateNotTrusted verdict.Code = "CertificateNotTrusted"
)
