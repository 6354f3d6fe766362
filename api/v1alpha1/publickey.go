package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
)

// PublicKeyHash returns "sha256:" and the hash, in hexadecimal, of a public key (SubjectPublicKeyInfo, DER), as in
// entries of the ledger.
func PublicKeyHash(subjectPublicKeyInfo []byte) string {
	digest := sha256.Sum256(subjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(digest[:])
}
