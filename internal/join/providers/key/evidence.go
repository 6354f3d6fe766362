// Package key is the provider of machines that are registered with a public key, or with the subject of a certificate.
//
// The machine signs the server's challenge, its node name, and the hash of the key for which it wants a certificate. Which
// node it gets is in the Machine that has its key, which package machines finds.
package key

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
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
	PublicKey binary `json:"publicKey,omitempty"`
	// Certificates are the certificate of the machine, and intermediate ones (DER).
	Certificates []binary `json:"certificates,omitempty"`
	// Algorithm is the name of the signature's algorithm, one of [algorithms].
	Algorithm string `json:"algorithm"`
	// Signature is of the message.
	Signature binary `json:"signature"`
}

// binary is a value in base64, which has only one form.
type binary []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *binary) UnmarshalText(text []byte) (err error) {
	if bytes.ContainsAny(text, "\r\n") {
		return errors.New("base64 with line ends")
	}
	*b, err = base64.StdEncoding.Strict().AppendDecode(nil, text)
	return err
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
	evidence
	// certificates are the parsed ones, the first one of the machine. With them, PublicKey is set too.
	certificates []*x509.Certificate
	algorithm    x509.SignatureAlgorithm
}

// decode reads a body. The error is an [*attest.Refusal].
func decode(body []byte) (*claim, error) {
	c := &claim{}
	if err := strictjson.Unmarshal(body, &c.evidence, strictjson.Options{}); err != nil {
		return nil, malformed("%v", strictjson.Explain(err))
	}
	at := slices.IndexFunc(algorithms(), func(a x509.SignatureAlgorithm) bool { return a.String() == c.Algorithm })
	switch {
	case at < 0:
		return nil, malformed("the algorithm is %.40q, want one of %v", c.Algorithm, algorithms())
	case c.CertifiedKey != "" && !v1alpha1.IsPublicKeyHash(c.CertifiedKey):
		return nil, malformed("certifiedKey is %.100q, want sha256: and a hash", c.CertifiedKey)
	case (len(c.PublicKey) == 0) == (len(c.Certificates) == 0):
		return nil, malformed("want either publicKey or certificates")
	case len(c.Certificates) > maxCertificates:
		return nil, malformed("%d certificates, want %d at most", len(c.Certificates), maxCertificates)
	}
	c.algorithm = algorithms()[at]
	for i, der := range c.Certificates {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, malformed("certificates[%d]: %v", i, err)
		}
		c.certificates = append(c.certificates, certificate)
	}
	if len(c.certificates) > 0 {
		c.PublicKey = c.certificates[0].RawSubjectPublicKeyInfo
	}
	return c, nil
}

func malformed(format string, args ...any) *attest.Refusal {
	return attest.Malformed(alwaysallow.EvidenceMalformed, format, args...)
}
