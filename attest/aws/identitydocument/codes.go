package identitydocument

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals for which the identity document is the reason. See
// docs/reasons.md.
const (
	// DocumentMalformed: what was sent is not a signed identity document.
	DocumentMalformed verdict.Code = "DocumentMalformed"
	// SignerUnknown: no certificate that is known signed it, or none of its region.
	SignerUnknown verdict.Code = "SignerUnknown"
	// SignatureInvalid: the signature is not that of the document.
	SignatureInvalid verdict.Code = "SignatureInvalid"
	// WrongDocumentVersion: the document is of a version that is not known.
	WrongDocumentVersion verdict.Code = "WrongDocumentVersion"
)
