package key

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals. See docs/reference/reasons. Others are of packages attest, machines and alwaysallow.
const (
	KeyNotAccepted        verdict.Code = "KeyNotAccepted"
	SignatureInvalid      verdict.Code = "SignatureInvalid"
	CertificateNotTrusted verdict.Code = "CertificateNotTrusted"
)
