package tpm

import (
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// endorsementKey is the key that identifies a TPM.
type endorsementKey struct {
	// public encrypts secrets for the TPM.
	public tpm2.LabeledEncapsulationKey
	// hash is "sha256:" and the hash of the public key, as in a Machine.
	hash string
	// trusted is true if a configured authority vouches for the TPM. Vouched says so, or why none does.
	trusted bool
	vouched string
}

// endorsement reads the endorsement key and its certificate.
func (a *Attestor) endorsement(k *keys) (*endorsementKey, error) {
	public, err := read[tpm2.TPMTPublic]("the endorsement key", k.EK)
	if err != nil {
		return nil, err
	}
	key, der, err := publicKey(public, EKNotAccepted)
	if err != nil {
		return nil, err
	}
	if !isStorageKey(&public.ObjectAttributes) {
		return nil, attest.Refuse(EKNotAccepted, "the key is not an endorsement key: want one that only decrypts, and never leaves its TPM")
	}
	e := &endorsementKey{hash: v1alpha1.PublicKeyHash(der)}
	if e.public, err = tpm2.ImportEncapsulationKey(public); err != nil {
		return nil, attest.Refuse(EKNotAccepted, "%.200s", err)
	}
	e.trusted, e.vouched, err = a.vouch(k.EKCertificate, key)
	return e, err
}

// publicKey returns the public key in a structure, if it is strong enough, and its SubjectPublicKeyInfo, DER.
func publicKey(public *tpm2.TPMTPublic, code verdict.Code) (crypto.PublicKey, []byte, error) {
	key, err := tpm2.Pub(*public)
	if err != nil {
		return nil, nil, attest.Refuse(code, "%.200s", err)
	}
	if weakness := approve.Weakness(key); weakness != "" {
		return nil, nil, attest.Refuse(code, "%s", weakness)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, nil, attest.Refuse(code, "%.200s", err)
	}
	return key, der, nil
}

// isStorageKey reports whether a key of a TPM only decrypts what the TPM itself understands.
func isStorageKey(has *tpm2.TPMAObject) bool {
	return has.Restricted && has.Decrypt && !has.SignEncrypt && neverLeaves(has)
}

// neverLeaves reports whether a key was made in its TPM and stays in it.
func neverLeaves(has *tpm2.TPMAObject) bool {
	return has.FixedTPM && has.FixedParent && has.SensitiveDataOrigin
}

// vouch reports whether a configured authority vouches for an endorsement key, and says how, or why none does. The
// error is a refusal: no honest machine shows a certificate of another key.
func (a *Attestor) vouch(text []byte, key crypto.PublicKey) (trusted bool, vouched string, err error) {
	if len(text) == 0 {
		return false, "the TPM has no certificate for its endorsement key", nil
	}
	certificate, err := parseCertificate(text)
	if err != nil {
		return false, fmt.Sprintf("the certificate of the endorsement key cannot be read: %.100s", err), nil
	}
	if same, ok := key.(interface{ Equal(crypto.PublicKey) bool }); !ok || !same.Equal(certificate.PublicKey) {
		return false, "", attest.Refuse(EKCertificateInvalid, "the certificate is of another key")
	}
	if a.options.Authorities == nil {
		return false, "no authorities of TPMs are configured", nil
	}
	if problem := a.unverified(certificate); problem != "" {
		return false, problem, nil
	}
	vouched = fmt.Sprintf("%.100s vouches for the TPM", certificate.Issuer)
	if a.options.Clock().After(certificate.NotAfter) {
		vouched += ", by a certificate that has expired at " + certificate.NotAfter.UTC().Format(time.DateOnly)
	}
	return true, vouched, nil
}

// parseCertificate reads the first element: TPMs store certificates in places of a fixed size.
func parseCertificate(text []byte) (*x509.Certificate, error) {
	var first asn1.RawValue
	if _, err := asn1.Unmarshal(text, &first); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(first.FullBytes)
}

// unverified says why a certificate is not one of an endorsement key by a configured authority (TCG EK
// Credential Profile, version 2.5, section 3).
func (a *Attestor) unverified(certificate *x509.Certificate) string {
	// The alternative name has vendor and model as a directory name, which x509 does not read.
	certificate.UnhandledCriticalExtensions = slices.DeleteFunc(certificate.UnhandledCriticalExtensions,
		asn1.ObjectIdentifier{2, 5, 29, 17}.Equal)
	at := a.options.Clock()
	if at.After(certificate.NotAfter) && !a.options.RejectExpiredCertificates {
		// Its authorities were valid when it was made.
		at = certificate.NotBefore
	}
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots: a.options.Authorities, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	usages := certificate.UnknownExtKeyUsage
	forEK := slices.ContainsFunc(usages, asn1.ObjectIdentifier{2, 23, 133, 8, 1}.Equal) // tcg-kp-EKCertificate
	switch {
	case err != nil:
		return fmt.Sprintf("the certificate of the endorsement key is not trusted: %.100s", err)
	case certificate.IsCA:
		return "the certificate of the endorsement key is one of an authority"
	case !forEK && len(usages)+len(certificate.ExtKeyUsage) > 0,
		certificate.KeyUsage != 0 && certificate.KeyUsage&(x509.KeyUsageKeyEncipherment|x509.KeyUsageKeyAgreement) == 0:
		return "the certificate is not for an endorsement key"
	}
	return ""
}
