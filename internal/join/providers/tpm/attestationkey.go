package tpm

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/binary"
	"math/big"

	"github.com/google/go-tpm/tpm2"

	"github.com/node-authorizer/node-authorizer/attest"
)

// attestationKey is a key of a TPM that signs only what the TPM itself has made.
type attestationKey struct {
	key crypto.PublicKey
	// name is the hash of the key with its attributes.
	name tpm2.TPM2BName
	// nameHash and hash are the hashes of the name and of the signatures.
	nameHash, hash crypto.Hash
	scheme         tpm2.TPMAlgID
}

// attestation reads an attestation key.
func attestation(text []byte) (*attestationKey, error) {
	public, err := read[tpm2.TPMTPublic]("the attestation key", text)
	if err != nil {
		return nil, err
	}
	key, _, err := publicKey(public, AKNotAccepted)
	if err != nil {
		return nil, err
	}
	has := &public.ObjectAttributes
	if !has.Restricted || !has.SignEncrypt || has.Decrypt || !neverLeaves(has) {
		return nil, attest.Refuse(AKNotAccepted, "the key is not an attestation key: want one that signs only what its TPM has made, "+
			"and never leaves it")
	}
	ak := &attestationKey{key: key}
	name, err := tpm2.ObjectName(public)
	if err != nil {
		return nil, attest.Refuse(AKNotAccepted, "%.200s", err)
	}
	ak.name = *name
	var nameStrong, strong bool
	ak.nameHash, nameStrong = strongHash(public.NameAlg)
	var hash tpm2.TPMAlgID
	ak.scheme, hash = signatureScheme(public)
	ak.hash, strong = strongHash(hash)
	if !nameStrong || !strong {
		return nil, attest.Refuse(AKNotAccepted, "the key does not sign with SHA-256 or better")
	}
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
	hash := ak.hash.New()
	hash.Write(signed)
	digest := hash.Sum(nil)
	switch key := ak.key.(type) {
	case *ecdsa.PublicKey:
		made, err := signature.Signature.ECDSA()
		return err == nil && ak.scheme == tpm2.TPMAlgECDSA && ak.signs(made.Hash) &&
			ecdsa.Verify(key, digest, new(big.Int).SetBytes(made.SignatureR.Buffer), new(big.Int).SetBytes(made.SignatureS.Buffer))
	case *rsa.PublicKey:
		if made, err := signature.Signature.RSASSA(); err == nil && ak.scheme == tpm2.TPMAlgRSASSA {
			return ak.signs(made.Hash) && rsa.VerifyPKCS1v15(key, ak.hash, digest, made.Sig.Buffer) == nil
		}
		if made, err := signature.Signature.RSAPSS(); err == nil && ak.scheme == tpm2.TPMAlgRSAPSS {
			return ak.signs(made.Hash) && rsa.VerifyPSS(key, ak.hash, digest, made.Sig.Buffer, nil) == nil
		}
	}
	return false
}

func (ak *attestationKey) signs(with tpm2.TPMAlgID) bool {
	hash, err := with.Hash()
	return err == nil && hash == ak.hash
}

// qualifiedName is the name of a primary key of the endorsement hierarchy in what it signs (TPM 2.0 Library, part
// 1, "Qualified Name").
func (ak *attestationKey) qualifiedName() []byte {
	hash := ak.nameHash.New()
	hash.Write(binary.BigEndian.AppendUint32(nil, uint32(tpm2.TPMRHEndorsement)))
	hash.Write(ak.name.Buffer)
	return hash.Sum(append([]byte{}, ak.name.Buffer[:2]...)) // the id of the hash
}
