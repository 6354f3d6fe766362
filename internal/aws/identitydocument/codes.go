package identitydocument

import "github.com/node-authorizer/node-authorizer/verdict"

// The codes of refusals because of the identity document. See docs/reference/reasons.
const (
	DocumentMalformed    verdict.Code = "DocumentMalformed"
	SignerUnknown        verdict.Code = "SignerUnknown"
	SignatureInvalid     verdict.Code = "SignatureInvalid"
	WrongDocumentVersion verdict.Code = "WrongDocumentVersion"
)
