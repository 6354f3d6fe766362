package ledger

import (
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// Kubernetes defines the Secret of a bootstrap token:
// https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
const (
	// TokenNamespace is the namespace of bootstrap tokens.
	TokenNamespace = metav1.NamespaceSystem
	// TokenGroup is the group of the users of our tokens.
	TokenGroup = v1alpha1.TokenGroup

	idKey             = "token-id"
	secretKey         = "token-secret"
	expirationKey     = "expiration"
	descriptionKey    = "description"
	groupsKey         = "auth-extra-groups"
	authenticationKey = "usage-bootstrap-authentication"

	secretNamePrefix = "bootstrap-token-"
)

// TokenSecretLength is the length of the secret half of a token.
const TokenSecretLength = 16

// TokenSecretName returns the name of the Secret of a token.
func TokenSecretName(id string) string { return secretNamePrefix + id }

// Token is the bootstrap token of an entry.
type Token struct {
	ID         string
	Expiration time.Time
	// Entry and EntryUID identify the entry that names the token.
	Entry    string
	EntryUID types.UID

	secret      string
	description string
}

// Value returns the whole token, as kubelet sends it. It is a credential.
func (t *Token) Value() string { return t.ID + "." + t.secret }

// String returns the id of the token, without its secret.
func (t Token) String() string { return "bootstrap token " + t.ID }

// Format prints String for every verb, so that the secret is never printed.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// Secret returns the Secret that makes the token valid. The token's entry owns it.
func (t *Token) Secret() *corev1.Secret {
	isController := true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: TokenNamespace, Name: TokenSecretName(t.ID),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind,
				Name: t.Entry, UID: t.EntryUID, Controller: &isController,
			}},
		},
		Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			idKey:             []byte(t.ID),
			secretKey:         []byte(t.secret),
			expirationKey:     []byte(t.Expiration.UTC().Format(time.RFC3339)),
			authenticationKey: []byte("true"),
			groupsKey:         []byte(TokenGroup),
			descriptionKey:    []byte(t.description),
		},
	}
}
