package identitydocument

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals because of the identity document. See docs/reference/reasons.
const (
	// DocumentMalformed: the evidence is not a signed identity document.
	DocumentMalformed verdict.Code = "DocumentMalformed"
	// SignerUnknown: no known certificate of the region signed it.
	SignerUnknown verdict.Code = "SignerUnknown"
	// SignatureInvalid: the signature does not match the document.
	SignatureInvalid verdict.Code = "SignatureInvalid"
	// WrongDocumentVersion: the document has an unknown version.
	WrongDocumentVersion verdict.Code = "WrongDocumentVersion"
)
