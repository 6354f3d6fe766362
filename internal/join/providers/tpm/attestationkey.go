package tpm

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/binary"
	"math/big"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/attest"
)

// attestationKey is a key of a TPM that signs only what the TPM itself has made.
type attestationKey struct {
	// Public is SubjectPublicKeyInfo, DER.
	Public []byte `json:"public"`
	// Name is the hash of the key with its attributes, after the id of the hash.
	Name []byte `json:"name"`
	// NameHash and Hash are the hashes of the name and of the signatures.
	NameHash crypto.Hash   `json:"nameHash"`
	Hash     crypto.Hash   `json:"hash"`
	Scheme   tpm2.TPMAlgID `json:"scheme"`
}

// attestation reads an attestation key.
func attestation(text []byte) (*attestationKey, error) {
	public, err := read[tpm2.TPMTPublic]("the attestation key", text)
	if err != nil {
		return nil, err
	}
	_, der, err := publicKey(public, AKNotAccepted)
	if err != nil {
		return nil, err
	}
	has := &public.ObjectAttributes
	if !has.Restricted || !has.SignEncrypt || has.Decrypt || !neverLeaves(has) {
		return nil, attest.Refuse(AKNotAccepted, "the key is not an attestation key: want one that signs only what its TPM has made, "+
			"and never leaves it")
	}
	ak := &attestationKey{Public: der}
	var nameStrong, strong bool
	ak.NameHash, nameStrong = strongHash(public.NameAlg)
	var hash tpm2.TPMAlgID
	ak.Scheme, hash = signatureScheme(public)
	ak.Hash, strong = strongHash(hash)
	if !nameStrong || !strong {
		return nil, attest.Refuse(AKNotAccepted, "the key does not sign with SHA-256 or better")
	}
	name := ak.NameHash.New()
	name.Write(text)
	ak.Name = name.Sum(binary.BigEndian.AppendUint16(nil, uint16(public.NameAlg)))
	return ak, nil
}

// strongHash reports whether a hash is SHA-256 or better.
func strongHash(id tpm2.TPMAlgID) (crypto.Hash, bool) {
	hash, err := id.Hash()
	return hash, err == nil && hash != crypto.SHA1
}

// signatureScheme returns how a key signs; zeros if that is left open.
func signatureScheme(public *tpm2.TPMTPublic) (scheme, hash tpm2.TPMAlgID) {
	if rsaKey, err := public.Parameters.RSADetail(); err == nil {
		if used, err := rsaKey.Scheme.Details.RSASSA(); err == nil {
			return tpm2.TPMAlgRSASSA, used.HashAlg
		}
		if used, err := rsaKey.Scheme.Details.RSAPSS(); err == nil {
			return tpm2.TPMAlgRSAPSS, used.HashAlg
		}
	}
	if eccKey, err := public.Parameters.ECCDetail(); err == nil {
		if used, err := eccKey.Scheme.Details.ECDSA(); err == nil {
			return tpm2.TPMAlgECDSA, used.HashAlg
		}
	}
	return 0, 0
}

// verify reports whether a signature is one of the key.
func (ak *attestationKey) verify(signed []byte, signature *tpm2.TPMTSignature) bool {
	public, err := x509.ParsePKIXPublicKey(ak.Public)
	if err != nil {
		return false
	}
	hash := ak.Hash.New()
	hash.Write(signed)
	digest := hash.Sum(nil)
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		made, err := signature.Signature.ECDSA()
		return err == nil && ak.Scheme == tpm2.TPMAlgECDSA && ak.signs(made.Hash) &&
			ecdsa.Verify(key, digest, new(big.Int).SetBytes(made.SignatureR.Buffer), new(big.Int).SetBytes(made.SignatureS.Buffer))
	case *rsa.PublicKey:
		if made, err := signature.Signature.RSASSA(); err == nil && ak.Scheme == tpm2.TPMAlgRSASSA {
			return ak.signs(made.Hash) && rsa.VerifyPKCS1v15(key, ak.Hash, digest, made.Sig.Buffer) == nil
		}
		if made, err := signature.Signature.RSAPSS(); err == nil && ak.Scheme == tpm2.TPMAlgRSAPSS {
			return ak.signs(made.Hash) && rsa.VerifyPSS(key, ak.Hash, digest, made.Sig.Buffer, nil) == nil
		}
	}
	return false
}

func (ak *attestationKey) signs(with tpm2.TPMAlgID) bool {
	hash, err := with.Hash()
	return err == nil && hash == ak.Hash
}

// qualifiedName is the name of a primary key of the endorsement hierarchy in what it signs (TPM 2.0 Library, part
// 1, "Qualified Name").
func (ak *attestationKey) qualifiedName() []byte {
	hash := ak.NameHash.New()
	hash.Write(binary.BigEndian.AppendUint32(nil, uint32(tpm2.TPMRHEndorsement)))
	hash.Write(ak.Name)
	return hash.Sum(append([]byte{}, ak.Name[:2]...)) // the id of the hash
}
