package identitydocument

import (
	"bytes"
	"crypto"
	//lint:ignore SA1019 One of the three forms in which AWS signs is DSA.
	"crypto/dsa"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"

	"github.com/node-authorizer/node-authorizer/attest"
)

// Verify verifies the signature of a document and reads it. It reads exactly the signed
// bytes. An error is an [*attest.Refusal].
func (v *Verifier) Verify(evidence *Evidence) (*Document, error) {
	if evidence.Signature != nil {
		return v.verifyBeside(evidence)
	}
	m, err := parseMessage(evidence.Document)
	if err != nil {
		return nil, err
	}
	signer, err := v.verifyMessage(m)
	if err != nil {
		return nil, err
	}
	document, err := parseDocument(m.content, m.form(), m.sha256())
	if err != nil {
		return nil, err
	}
	if !signer.signsIn(document.Region) {
		return nil, attest.Refuse(SignerUnknown,
			"the identity document is for region %s, but signed with AWS's certificate of another region: %s",
			document.Region, signer)
	}
	return document, nil
}

// verifyMessage verifies the signature of a message and returns the certificate: a known
// one with the name in the message. Names are not secret; they only select.
func (v *Verifier) verifyMessage(m *message) (*certificate, error) {
	m.sum = m.algorithm.sum(m.content)
	if len(m.digest) != 2+len(m.sum) || m.digest[0] != tagOctetString || !bytes.Equal(m.digest[2:], m.sum) {
		return nil, attest.Refuse(SignatureInvalid, "the identity document was changed: its digest differs from the signed one")
	}
	known := false
	hashed := m.algorithm.sum(m.attributes)
	for _, signer := range v.messages[signerName(m.issuer, m.serial)] {
		if !m.algorithm.fits(signer.key) {
			continue
		}
		known = true
		if verifies(signer.key, hashed, m.signature) {
			return signer, nil
		}
	}
	if known {
		return nil, attest.Refuse(SignatureInvalid, "the signature (form %s) is not AWS's", m.form())
	}
	return nil, attest.Refuse(SignerUnknown, "no certificate with serial number %x signs documents of form %s", m.serial, m.form())
}

// verifyBeside verifies a detached signature. Only the document has the region of the
// key, so the document is read first. It is used for nothing else before the signature is
// verified.
func (v *Verifier) verifyBeside(evidence *Evidence) (*Document, error) {
	sum := sha256.Sum256(evidence.Document)
	document, err := parseDocument(evidence.Document, Signature, sum)
	if err != nil {
		return nil, err
	}
	signers := v.signatures[document.Region]
	if len(signers) == 0 {
		signers = v.everywhere
	}
	if len(signers) == 0 {
		return nil, attest.Refuse(SignerUnknown, "there is no certificate for documents of form %s in region %s", Signature,
			document.Region)
	}
	for _, signer := range signers {
		if verifies(signer.key, sum[:], evidence.Signature) {
			return document, nil
		}
	}
	return nil, attest.Refuse(SignatureInvalid, "the signature (form %s) is not AWS's for region %s", Signature, document.Region)
}

// verifies reports whether a signature is valid for a digest.
func verifies(key any, digest, signature []byte) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest, signature) == nil
	case *dsa.PublicKey:
		r, s, ok := dsaSignature(signature)
		return ok && dsa.Verify(key, digest, r, s)
	}
	return false
}

// dsaSignature reads the two numbers of a DSA signature (RFC 3279, section 2.2.2). Only
// their canonical DER is accepted.
func dsaSignature(der []byte) (r, s *big.Int, ok bool) {
	outer := elements{rest: der, definite: true}
	numbers, err := outer.only(tagSequence)
	if err != nil {
		return nil, nil, false
	}
	if r, err = numbers.number(); err != nil {
		return nil, nil, false
	}
	if s, err = numbers.number(); err != nil || !numbers.empty() {
		return nil, nil, false
	}
	return r, s, true
}

// number reads a positive number.
func (e *elements) number() (*big.Int, error) {
	value, err := e.want(tagInteger)
	if err != nil {
		return nil, err
	}
	digits := value.content
	switch {
	case len(digits) == 0, digits[0] >= 0x80:
		return nil, errUnexpected
	case len(digits) > 1 && digits[0] == 0 && digits[1] < 0x80:
		return nil, errUnexpected
	}
	return new(big.Int).SetBytes(digits), nil
}
