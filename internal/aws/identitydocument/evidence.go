package identitydocument

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// Evidence is what a machine sends: its identity document in one of the three forms, and,
// if the server requires it, a signed request that proves which credentials it has.
type Evidence struct {
	// Document is the text of a PKCS #7 message from the metadata service, base64 with or
	// without its PEM lines. With a detached signature, it is the JSON of the document.
	Document []byte
	// Signature is the detached signature, decoded. It is nil if the document is a message.
	Signature []byte
	// CallerIdentity is nil if none was sent.
	CallerIdentity *CallerIdentityRequest
}

// request is the body of a request:
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
		return nil, malformed("the request: it is empty: want an identity document; is the client's attestor (--authorizer) aws?")
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

// Request returns the body of a request with the evidence, for [ParseEvidence].
func (e *Evidence) Request() ([]byte, error) {
	r := request{Document: e.Document, CallerIdentity: e.CallerIdentity}
	if e.Signature != nil {
		r.Signature = base64.StdEncoding.EncodeToString(e.Signature)
	}
	return json.Marshal(r)
}

// Unverified reads a document without checking its signature. The result is not
// trustworthy.
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

// The lines that may enclose a message (RFC 7468, section 8).
var (
	beginLine = []byte("-----BEGIN PKCS7-----")
	endLine   = []byte("-----END PKCS7-----")
)

// decodeText decodes a message from base64 and removes its PEM lines.
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
