// Package key is the provider of machines that are registered with a public key, or with the subject of a certificate.
//
// The machine signs the server's challenge, its node name, and the hash of the key for which it wants a certificate. Which
// node it gets is in the Machine that has its key, which package machines finds.
package key

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// evidence is the body of a request. Binary values are in base64.
type evidence struct {
	// Challenge is of the server.
	Challenge string `json:"challenge"`
	// CertifiedKey is "sha256:" and the hash, in hexadecimal, of the key for which the machine asks for its certificate.
	// It can be empty.
	CertifiedKey string `json:"certifiedKey"`
	// PublicKey is the key of the machine (SubjectPublicKeyInfo, DER); empty with Certificates.
	PublicKey string `json:"publicKey,omitempty"`
	// Certificates are the certificate of the machine, and intermediate ones (DER).
	Certificates []string `json:"certificates,omitempty"`
	// Algorithm is the name of the signature's algorithm, one of [algorithms].
	Algorithm string `json:"algorithm"`
	// Signature is of the message.
	Signature string `json:"signature"`
}

// maxCertificates is how many certificates a machine may send.
const maxCertificates = 8

// algorithms are the algorithms of signatures. Their names are the ones of crypto/x509: SHA256-RSA is PKCS #1 version 1.5,
// and signatures with ECDSA are in ASN.1.
func algorithms() []x509.SignatureAlgorithm {
	return []x509.SignatureAlgorithm{
		x509.PureEd25519, x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.SHA256WithRSA, x509.SHA256WithRSAPSS,
	}
}

// messagePrefix separates signatures about joining from all others that the key makes.
const messagePrefix = "node-authorizer.io/v1 machine key"

// message is what a machine signs. No part has a line end. A host key of OpenSSH signs only hashes otherwise, which are
// shorter.
func message(clusterID, challenge, nodeName, certifiedKey, ownKey string) []byte {
	return []byte(strings.Join([]string{messagePrefix, clusterID, challenge, strings.ToLower(nodeName), certifiedKey, ownKey}, "\n"))
}

// claim is what the body of a request says, before it is verified.
type claim struct {
	challenge, certifiedKey string
	// publicKey is the key of the machine (SubjectPublicKeyInfo, DER), or of its certificate, which is the first one.
	publicKey    []byte
	certificates []*x509.Certificate
	algorithm    x509.SignatureAlgorithm
	signature    []byte
}

// keyForm is the form of the hash of a public key.
var keyForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// decode reads a body. The error is an [*attest.Refusal].
func decode(body []byte) (*claim, error) {
	var e evidence
	if err := strictjson.Unmarshal(body, &e, strictjson.Options{}); err != nil {
		return nil, malformed("%v", strictjson.Explain(err))
	}
	c := &claim{challenge: e.Challenge, certifiedKey: e.CertifiedKey}
	at := slices.IndexFunc(algorithms(), func(a x509.SignatureAlgorithm) bool { return a.String() == e.Algorithm })
	switch {
	case at < 0:
		return nil, malformed("the algorithm is %.40q, want one of %v", e.Algorithm, algorithms())
	case e.CertifiedKey != "" && !keyForm.MatchString(e.CertifiedKey):
		return nil, malformed("certifiedKey is %.100q, want sha256: and a hash", e.CertifiedKey)
	case (e.PublicKey == "") == (len(e.Certificates) == 0):
		return nil, malformed("want either publicKey or certificates")
	case len(e.Certificates) > maxCertificates:
		return nil, malformed("%d certificates, want %d at most", len(e.Certificates), maxCertificates)
	}
	c.algorithm = algorithms()[at]
	var err error
	if c.signature, err = binary(e.Signature); err != nil {
		return nil, malformed("signature: %v", err)
	}
	if c.publicKey, err = binary(e.PublicKey); err != nil {
		return nil, malformed("publicKey: %v", err)
	}
	for i, text := range e.Certificates {
		der, err := binary(text)
		if err != nil {
			return nil, malformed("certificates[%d]: %v", i, err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, malformed("certificates[%d]: %v", i, err)
		}
		c.certificates = append(c.certificates, certificate)
	}
	if len(c.certificates) > 0 {
		c.publicKey = c.certificates[0].RawSubjectPublicKeyInfo
	}
	return c, nil
}

// binary decodes base64. Each value has only one form.
func binary(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("base64 with line ends")
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}

func malformed(format string, args ...any) *attest.Refusal {
	refusal := attest.Refuse(alwaysallow.EvidenceMalformed, format, args...)
	refusal.Malformed = true
	return refusal
}
