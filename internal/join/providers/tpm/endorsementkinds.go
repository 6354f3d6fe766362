package tpm

import (
	"fmt"

	"github.com/google/go-tpm/tpm2"
)

// certifiedKey is a kind of endorsement key that vendors certify.
type certifiedKey struct {
	// index is where the TPM has the certificate.
	index    tpm2.TPMHandle
	template tpm2.TPMTPublic
	// changes are whether the TPM may have a nonce and another template for the key, in the next two places.
	changes bool
}

// certifiedKeys are the kinds of the TCG EK Credential Profile, version 2.5, section 2.2.1, the preferred one first: RSA 2048 and
// P-256 of the low range; RSA 2048, P-256 and P-384 of the high range.
func certifiedKeys() []certifiedKey {
	return []certifiedKey{
		{0x01c00002, tpm2.RSAEKTemplate, true},
		{0x01c0000a, tpm2.ECCEKTemplate, true},
		{0x01c00012, inHighRange(tpm2.RSAEKTemplate, policyB256), false},
		{0x01c00014, inHighRange(tpm2.ECCEKTemplate, policyB256), false},
		{0x01c00016, inHighRange(p384Template(), policyB384), false},
	}
}

// The policies B of templates H-1 and H-2, and of H-3.
const (
	policyB256 = "\xca\x3d\x0a\x99\xa2\xb9\x39\x06\xf7\xa3\x34\x24\x14\xef\xcf\xb3\xa3\x85\xd4\x4c\xd1\xfd\x45\x90\x89\xd1\x9b\x50" +
		"\x71\xc0\xb7\xa0"
	policyB384 = "\xb2\x6e\x7d\x28\xd1\x1a\x50\xbc\x53\xd8\x82\xbc\xf5\xfd\x3a\x1a\x07\x41\x48\xbb\x35\xd3\xb4\xe4\xcb\x1c\x0a\xd9" +
		"\xbd\xe4\x19\xca\xcb\x47\xba\x09\x69\x96\x46\x15\x0f\x9f\xc0\x00\xf3\xf8\x0e\x12"
)

// inHighRange returns the template of the high range: its keys are used with an empty password or policy B.
func inHighRange(template tpm2.TPMTPublic, policy string) tpm2.TPMTPublic {
	template.ObjectAttributes.UserWithAuth = true
	template.AuthPolicy = tpm2.TPM2BDigest{Buffer: []byte(policy)}
	template.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgECC, &tpm2.TPMSECCPoint{})
	if template.Type == tpm2.TPMAlgRSA {
		template.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgRSA, &tpm2.TPM2BPublicKeyRSA{})
	}
	return template
}

func p384Template() tpm2.TPMTPublic {
	template := tpm2.ECCEKTemplate
	template.NameAlg = tpm2.TPMAlgSHA384
	template.Parameters = tpm2.NewTPMUPublicParms(tpm2.TPMAlgECC, &tpm2.TPMSECCParms{
		CurveID: tpm2.TPMECCNistP384,
		Symmetric: tpm2.TPMTSymDefObject{
			Algorithm: tpm2.TPMAlgAES, KeyBits: tpm2.NewTPMUSymKeyBits(tpm2.TPMAlgAES, tpm2.TPMKeyBits(256)),
			Mode: tpm2.NewTPMUSymMode(tpm2.TPMAlgAES, tpm2.TPMAlgCFB),
		},
	})
	return template
}

// templateOf returns the template of the TPM's key of a kind, with the changes that the TPM has.
func (d *device) templateOf(kind *certifiedKey) (*tpm2.TPMTPublic, error) {
	template := kind.template
	if !kind.changes {
		return &template, nil
	}
	nonce, err := d.readNV(kind.index + 1)
	if err != nil {
		return nil, fmt.Errorf("read the nonce of the endorsement key: %w", err)
	}
	stored, err := d.readNV(kind.index + 2)
	if err != nil {
		return nil, fmt.Errorf("read the template of the endorsement key: %w", err)
	}
	if len(stored) > 0 {
		other, err := tpm2.Unmarshal[tpm2.TPMTPublic](stored)
		if err != nil {
			return nil, fmt.Errorf("read the template of the endorsement key: %w", err)
		}
		template = *other
	}
	if len(nonce) > 0 {
		template.Unique = uniqueOf(template.Type, nonce)
	}
	return &template, nil
}

// uniqueOf returns a nonce in the form in which a template of the low range has it.
func uniqueOf(kind tpm2.TPMAlgID, nonce []byte) tpm2.TPMUPublicID {
	if kind == tpm2.TPMAlgRSA {
		number := make([]byte, 256)
		copy(number, nonce)
		return tpm2.NewTPMUPublicID(kind, &tpm2.TPM2BPublicKeyRSA{Buffer: number})
	}
	x := make([]byte, 32)
	copy(x, nonce)
	return tpm2.NewTPMUPublicID(kind, &tpm2.TPMSECCPoint{
		X: tpm2.TPM2BECCParameter{Buffer: x}, Y: tpm2.TPM2BECCParameter{Buffer: make([]byte, 32)},
	})
}
