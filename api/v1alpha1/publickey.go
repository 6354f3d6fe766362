package v1alpha1

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
)

const hashPrefix = "sha256:"

// PublicKeyHash returns "sha256:" and the hash, in hexadecimal, of a public key (SubjectPublicKeyInfo, DER), as in
// entries of the ledger.
func PublicKeyHash(subjectPublicKeyInfo []byte) string {
	digest := sha256.Sum256(subjectPublicKeyInfo)
	return hashPrefix + hex.EncodeToString(digest[:])
}

// HashOf is [PublicKeyHash] of a public key of package crypto.
func HashOf(key any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("encode the public key: %w", err)
	}
	return PublicKeyHash(der), nil
}

// IsPublicKeyHash reports whether a text has the form of a [PublicKeyHash].
func IsPublicKeyHash(text string) bool {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	return ok && len(digits) == hex.EncodedLen(sha256.Size) && strings.Trim(digits, "0123456789abcdef") == ""
}
