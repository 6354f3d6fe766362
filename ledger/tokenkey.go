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

// The labels of what is derived from the key of the service, each for one use. Another
// way of deriving gets other labels, so that entries name another key.
const (
	tokenSecretLabel = "node-authorizer.io/v1 secret halves of bootstrap tokens"
	tokenKeyIDLabel  = "node-authorizer.io/v1 name of the key"
)

// tokenKeyIDBytes is how long the name of a key is, before it is written in
// hexadecimal.
const tokenKeyIDBytes = 8

// TokenKey makes the secret halves of tokens. Each follows from the key, the UID of an
// entry and the id of the token: whoever has the key makes the same token again,
// without reading its Secret.
type TokenKey struct {
	id  string
	key []byte
}

// NewTokenKey derives it from the [ServiceKey].
func NewTokenKey(service []byte) (*TokenKey, error) {
	if len(service) != ServiceKeyBytes {
		return nil, fmt.Errorf("derive the key of tokens from one of %d bytes: want %d", len(service), ServiceKeyBytes)
	}
	key, err := hkdf.Key(sha256.New, service, nil, tokenSecretLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key of tokens: %w", err)
	}
	id, err := hkdf.Key(sha256.New, service, nil, tokenKeyIDLabel, tokenKeyIDBytes)
	if err != nil {
		return nil, fmt.Errorf("derive the name of the key of tokens: %w", err)
	}
	return &TokenKey{id: hex.EncodeToString(id), key: key}, nil
}

// ID names the key in entries. It is no secret.
func (k *TokenKey) ID() string { return k.id }

// String names the key.
func (k TokenKey) String() string { return "key " + k.id }

// Format is String, whatever the verb: no way of printing shows the key.
func (k TokenKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// Token is the token that an entry names. The entry exists, and names this key.
func (k *TokenKey) Token(entry *v1alpha1.NodeAttestation) *Token {
	return &Token{
		ID: entry.Spec.TokenID, Expiration: entry.Spec.TokenExpiration.Time, Entry: entry.Name, EntryUID: entry.UID,
		secret:      k.secret(entry.UID, entry.Spec.TokenID),
		description: "Lets " + entry.Name + " join as node " + entry.Spec.NodeName + ".",
	}
}

// secret turns pseudorandom bytes into characters, each as likely as the others.
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

// block is one of the blocks of pseudorandom bytes of a token. What is hashed has one
// meaning only: no id holds the byte that ends it.
func (k *TokenKey) block(entry types.UID, id string, number uint32) []byte {
	mac := hmac.New(sha256.New, k.key)
	message := binary.BigEndian.AppendUint32(nil, number)
	message = append(append(message, id...), 0)
	mac.Write(append(message, entry...)) // a hash has no errors
	return mac.Sum(nil)
}

// TokenCharacter maps a random byte to a character of the alphabet of tokens. Some
// bytes it does not map, so that each character is as likely as the others.
func TokenCharacter(b byte) (c byte, ok bool) {
	const fair = 256 - 256%len(v1alpha1.TokenAlphabet)
	if int(b) >= fair {
		return 0, false
	}
	return v1alpha1.TokenAlphabet[int(b)%len(v1alpha1.TokenAlphabet)], true
}
