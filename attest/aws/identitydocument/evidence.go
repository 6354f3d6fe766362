package identitydocument

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// Evidence is what a machine sends: its identity document in one of the three
// forms, and, where the server asks for it, a signed request that says whose
// credentials it has.
type Evidence struct {
	// Document is the text of a PKCS #7 message as the metadata service gives it,
	// base64 with or without its PEM lines; or the JSON of the document, if there
	// is a signature beside it.
	Document []byte
	// Signature is the signature beside the document, decoded; nil if the document
	// is a message that has its own.
	Signature []byte
	// CallerIdentity is nil if none was sent.
	CallerIdentity *CallerIdentityRequest
}

// request is the evidence in the body of a request:
//
//	{"Document": base64 of what the metadata service has under pkcs7 or rsa2048}
//	{"Document": base64 of what it has under document, "Signature": what it has under signature}
type request struct {
	Document       []byte
	Signature      string                 `json:",omitempty"`
	CallerIdentity *CallerIdentityRequest `json:",omitempty"`
}

// ParseEvidence reads the body of a request. The error is an [*attest.Refusal].
func ParseEvidence(data []byte) (*Evidence, error) {
	if len(data) == 0 {
		return nil, malformed("the request: it is empty; the machine has to send its identity document: is the client's attestor (--authorizer) aws?")
	}
	var b request
	if err := strictjson.Unmarshal(data, &b, strictjson.Options{}); err != nil {
		return nil, malformed("the request: %v", err)
	}
	if len(b.Document) == 0 {
		return nil, malformed("the request: Document is missing or empty")
	}
	evidence := &Evidence{Document: b.Document, CallerIdentity: b.CallerIdentity}
	if b.Signature != "" {
		signature, err := decodeBase64([]byte(b.Signature))
		if err != nil {
			return nil, malformed("the request: Signature: %v", err)
		}
		evidence.Signature = signature
	}
	return evidence, nil
}

// Request is the body of a request with the evidence, as [ParseEvidence] reads it.
func (e *Evidence) Request() ([]byte, error) {
	r := request{Document: e.Document, CallerIdentity: e.CallerIdentity}
	if e.Signature != nil {
		r.Signature = base64.StdEncoding.EncodeToString(e.Signature)
	}
	return json.Marshal(r)
}

// Unverified reads a document without looking at its signature. What it returns
// was written by whoever sent it.
func Unverified(evidence *Evidence) (*Document, error) {
	if evidence.Signature != nil || bytes.HasPrefix(evidence.Document, []byte("{")) {
		return parseDocument(evidence.Document, Signature, sha256.Sum256(evidence.Document))
	}
	m, err := parseMessage(evidence.Document)
	if err != nil {
		return nil, err
	}
	return parseDocument(m.content, m.form(), m.sha256())
}

// The lines that the text of a message may have around it (RFC 7468, section 8).
var (
	beginLine = []byte("-----BEGIN PKCS7-----")
	endLine   = []byte("-----END PKCS7-----")
)

// decodeText takes a message out of its base64 and, if it has them, its PEM lines.
func decodeText(text []byte) ([]byte, error) {
	text = bytes.TrimSpace(text)
	if after, ok := bytes.CutPrefix(text, beginLine); ok {
		if text, ok = bytes.CutSuffix(after, endLine); !ok {
			return nil, malformed("the PKCS #7 message: it begins with a PEM line and does not end with one")
		}
	}
	der, err := decodeBase64(text)
	if err != nil {
		return nil, malformed("the PKCS #7 message: %v", err)
	}
	return der, nil
}

// decodeBase64 decodes base64 in lines of any length.
func decodeBase64(text []byte) ([]byte, error) {
	text = bytes.TrimSpace(text)
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(decoded, text)
	if err != nil {
		return nil, err
	}
	return decoded[:n], nil
}
