package ledger

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// The labels of keys that are derived from the service key, one for each use. If the
// derivation changes, the labels change too, so that entries name another key.
const (
	tokenSecretLabel = "node-authorizer.io/v1 secret halves of bootstrap tokens"
	tokenKeyIDLabel  = "node-authorizer.io/v1 name of the key"
)

// tokenKeyIDBytes is the length of a key ID before hexadecimal encoding.
const tokenKeyIDBytes = 8

// TokenKey derives the secret halves of tokens. A secret half depends only on the key, the
// UID of the entry and the id of the token. So each replica that has the key derives the
// same token, and need not read its Secret.
type TokenKey struct {
	id  string
	key []byte
}

// NewTokenKey derives the token key from the [ServiceKey].
func NewTokenKey(service []byte) (*TokenKey, error) {
	if len(service) != ServiceKeyBytes {
		return nil, fmt.Errorf("derive the token key from a service key of %d bytes: want %d", len(service), ServiceKeyBytes)
	}
	key, err := hkdf.Key(sha256.New, service, nil, tokenSecretLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the token key: %w", err)
	}
	id, err := hkdf.Key(sha256.New, service, nil, tokenKeyIDLabel, tokenKeyIDBytes)
	if err != nil {
		return nil, fmt.Errorf("derive the ID of the token key: %w", err)
	}
	return &TokenKey{id: hex.EncodeToString(id), key: key}, nil
}

// ID identifies the key in entries. It is not secret.
func (k *TokenKey) ID() string { return k.id }

// String returns the ID of the key.
func (k TokenKey) String() string { return "key " + k.id }

// Format prints String for every verb, so that the key is never printed.
func (k TokenKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// Token derives the token of an entry. The entry must exist and name this key.
func (k *TokenKey) Token(entry *v1alpha1.NodeAttestation) *Token {
	return &Token{
		ID: entry.Spec.TokenID, Expiration: entry.Spec.TokenExpiration.Time, Entry: entry.Name, EntryUID: entry.UID,
		secret:      k.secret(entry.UID, entry.Spec.TokenID),
		description: "Lets " + entry.Name + " join as node " + entry.Spec.NodeName + ".",
	}
}

// secret turns pseudorandom bytes into characters, which are uniformly distributed.
func (k *TokenKey) secret(entry types.UID, id string) string {
	text := make([]byte, 0, TokenSecretLength)
	for block := uint32(0); ; block++ {
		for _, b := range k.block(entry, id, block) {
			if len(text) == TokenSecretLength {
				return string(text)
			}
			if c, ok := TokenCharacter(b); ok {
				text = append(text, c)
			}
		}
	}
}

// block returns one block of the pseudorandom bytes of a token. The message that is hashed
// is unambiguous, because no token id contains the zero byte that ends it.
func (k *TokenKey) block(entry types.UID, id string, number uint32) []byte {
	mac := hmac.New(sha256.New, k.key)
	message := binary.BigEndian.AppendUint32(nil, number)
	message = append(append(message, id...), 0)
	mac.Write(append(message, entry...)) // a hash has no errors
	return mac.Sum(nil)
}

// TokenCharacter maps a random byte to a character of the token alphabet. It rejects some
// bytes, so that the characters are uniformly distributed.
func TokenCharacter(b byte) (c byte, ok bool) {
	const fair = 256 - 256%len(v1alpha1.TokenAlphabet)
	if int(b) >= fair {
		return 0, false
	}
	return v1alpha1.TokenAlphabet[int(b)%len(v1alpha1.TokenAlphabet)], true
}
