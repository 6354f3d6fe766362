package ledger

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// What the Secret of a bootstrap token looks like is fixed by Kubernetes:
// https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
const (
	// TokenNamespace is where bootstrap tokens are.
	TokenNamespace = metav1.NamespaceSystem
	// TokenGroup is the group of users with our tokens.
	TokenGroup = v1alpha1.TokenGroup
	// PublicKeyAnnotation is on the Secret of a token that was used: "sha256:" and
	// the hash, in hexadecimal, of the public key (SubjectPublicKeyInfo, DER) of
	// the one certificate request for which it is good.
	PublicKeyAnnotation = v1alpha1.Group + "/public-key"
	// NoPublicKey is in place of the hash on the Secret of a token that was taken
	// back before it was used: no certificate request has it.
	NoPublicKey = "none"

	// ExpirationKey is the key of the Secret that says when the token ends, as a
	// time of RFC 3339.
	ExpirationKey = "expiration"

	idKey             = "token-id"
	secretKey         = "token-secret"
	descriptionKey    = "description"
	groupsKey         = "auth-extra-groups"
	authenticationKey = "usage-bootstrap-authentication"

	secretNamePrefix = "bootstrap-token-"
)

// TokenSecretLength is the length of the secret half of a token.
const TokenSecretLength = 16

// TokenSecretName is the name of the Secret of a token.
func TokenSecretName(id string) string { return secretNamePrefix + id }

// Token is a bootstrap token as its Secret has it.
type Token struct {
	ID         string
	Expiration time.Time
	// Entry and EntryUID are the entry of the ledger that owns the token.
	Entry    string
	EntryUID types.UID
	// PublicKey is the value of [PublicKeyAnnotation]; empty until the token is
	// used.
	PublicKey string

	secret string
}

// Value is the whole token, as kubelet sends it. It is a credential.
func (t *Token) Value() string { return t.ID + "." + t.secret }

// String names the token without its secret.
func (t Token) String() string { return "bootstrap token " + t.ID }

// Format is String, whatever the verb: no way of printing shows the secret.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// NewTokenSecret returns the Secret of the token of an entry that exists.
func NewTokenSecret(entry *v1alpha1.NodeAttestation, secret string) *corev1.Secret {
	isController := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: TokenNamespace, Name: TokenSecretName(entry.Spec.TokenID),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind,
				Name: entry.Name, UID: entry.UID, Controller: &isController,
			}},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			idKey:             []byte(entry.Spec.TokenID),
			secretKey:         []byte(secret),
			ExpirationKey:     []byte(entry.Spec.TokenExpiration.UTC().Format(time.RFC3339)),
			authenticationKey: []byte("true"),
			groupsKey:         []byte(TokenGroup),
			descriptionKey:    []byte("Lets " + entry.Name + " join as node " + entry.Spec.NodeName + "."),
		},
	}
}

// ParseToken reads the Secret of a token. It is an error if it is not one that
// [NewTokenSecret] made, whatever was added to it since.
func ParseToken(secret *corev1.Secret) (*Token, error) {
	token := &Token{
		ID: string(secret.Data[idKey]), secret: string(secret.Data[secretKey]),
		PublicKey: secret.Annotations[PublicKeyAnnotation],
	}
	owner := metav1.GetControllerOf(secret)
	expiration, err := time.Parse(time.RFC3339, string(secret.Data[ExpirationKey]))
	if token.Expiration = expiration; err != nil {
		return nil, notOurs(secret, "when it expires cannot be read")
	}
	switch {
	case secret.Type != corev1.SecretTypeBootstrapToken:
		return nil, notOurs(secret, "its type is not %s", corev1.SecretTypeBootstrapToken)
	case !v1alpha1.IsTokenID(token.ID) || secret.Name != TokenSecretName(token.ID):
		return nil, notOurs(secret, "its name is not that of its token")
	case !isTokenSecret(token.secret):
		return nil, notOurs(secret, "it holds no token")
	case string(secret.Data[groupsKey]) != TokenGroup:
		return nil, notOurs(secret, "its groups are not %s", TokenGroup)
	case owner == nil || owner.Kind != v1alpha1.Kind || owner.APIVersion != v1alpha1.GroupVersion().String():
		return nil, notOurs(secret, "no %s controls it", v1alpha1.Kind)
	}
	token.Entry, token.EntryUID = owner.Name, owner.UID
	return token, nil
}

func notOurs(secret *corev1.Secret, format string, args ...any) error {
	return fmt.Errorf("secret %s/%s is not a bootstrap token of the ledger: %s", secret.Namespace, secret.Name, fmt.Sprintf(format, args...))
}

func isTokenSecret(s string) bool {
	return len(s) == TokenSecretLength && strings.Trim(s, v1alpha1.TokenAlphabet) == ""
}
