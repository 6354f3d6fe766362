package bootstrap

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/ledger"
)

// mint creates the token that the entry announces, or finds it created.
func (r *redemption) mint(ctx context.Context, entry *v1alpha1.NodeAttestation) (*Grant, error) {
	secret := ledger.NewTokenSecret(entry, randomText(ledger.TokenSecretLength))
	_, err := r.secrets().Create(ctx, secret, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.minted(ctx, entry)
	case err != nil:
		return nil, fmt.Errorf("create %s: %w", secretNamed(entry), err)
	}
	return r.confirmed(ctx, entry, secret, false)
}

// minted gives out the token that another request has created.
func (r *redemption) minted(ctx context.Context, entry *v1alpha1.NodeAttestation) (*Grant, error) {
	secret, err := r.secret(ctx, entry)
	if apierrors.IsNotFound(err) {
		return nil, errChanged
	}
	if err != nil {
		return nil, err
	}
	token, err := ledger.ParseToken(secret)
	switch {
	case err != nil || token.EntryUID != entry.UID:
		return r.reissue(ctx, entry) // somebody else's token has the same id
	case token.PublicKey == ledger.NoPublicKey:
		return r.reissue(ctx, entry)
	case token.PublicKey != "":
		return r.again(ctx, entry, AlreadyAttested)
	case secret.DeletionTimestamp != nil || !r.now().Before(token.Expiration):
		return r.expired(ctx, entry)
	case token.Expiration.Sub(r.now()) < r.ttl/shortLife:
		return nil, fmt.Errorf("%s ends in %s, too soon to be used: try again when it has ended", token, token.Expiration.Sub(r.now()).Round(time.Second))
	}
	return r.confirmed(ctx, entry, secret, true)
}

// shortLife is which part of a token's life is too short for a machine to use it
// in.
const shortLife = 10

// confirmed returns the token if it is still the one that the entry announces, and
// unused, now that its Secret exists: whoever revokes the machine from here on
// finds the Secret.
func (r *redemption) confirmed(ctx context.Context, entry *v1alpha1.NodeAttestation, secret *corev1.Secret, repeated bool) (*Grant, error) {
	token, err := ledger.ParseToken(secret)
	if err != nil {
		return nil, err
	}
	current, err := r.ledger.Get(ctx, entry.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errChanged
	case err != nil:
		return nil, err
	case current.UID != entry.UID, current.DeletionTimestamp != nil, current.Phase() != v1alpha1.Issued,
		current.Spec.TokenID != token.ID, current.Spec.NodeName != r.id.NodeName:
		return nil, errChanged
	}
	return &Grant{Token: token, Repeated: repeated}, nil
}

// retire makes the token of an entry unusable before another takes its place, or
// reports that it has been used. It competes with the approver for the Secret:
// whoever changes it first wins.
func (r *redemption) retire(ctx context.Context, entry *v1alpha1.NodeAttestation) (used bool, err error) {
	secret, err := r.secret(ctx, entry)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	token, err := ledger.ParseToken(secret)
	switch {
	case err != nil || token.EntryUID != entry.UID, token != nil && token.PublicKey == ledger.NoPublicKey:
		return false, nil
	case token.PublicKey != "":
		return true, nil
	}
	secret = secret.DeepCopy()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, ledger.PublicKeyAnnotation, ledger.NoPublicKey)
	secret.Data[ledger.ExpirationKey] = []byte(r.now().UTC().Format(time.RFC3339))
	_, err = r.secrets().Update(ctx, secret, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		return false, errChanged
	case err != nil:
		return false, fmt.Errorf("take back %s: %w", secretNamed(entry), err)
	}
	return false, nil
}

func (r *redemption) secrets() corev1client.SecretInterface {
	return r.client.CoreV1().Secrets(ledger.TokenNamespace)
}

func (r *redemption) secret(ctx context.Context, entry *v1alpha1.NodeAttestation) (*corev1.Secret, error) {
	secret, err := r.secrets().Get(ctx, ledger.TokenSecretName(entry.Spec.TokenID), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", secretNamed(entry), err)
	}
	return secret, nil
}

func secretNamed(entry *v1alpha1.NodeAttestation) string {
	return "secret " + ledger.TokenNamespace + "/" + ledger.TokenSecretName(entry.Spec.TokenID)
}

// randomText returns random characters of the alphabet of tokens, each as likely
// as the others.
func randomText(length int) string {
	const fair = 256 - 256%len(v1alpha1.TokenAlphabet) // bytes from here on would favour the first characters
	text := make([]byte, 0, length)
	for random := make([]byte, 2*length); ; {
		rand.Read(random) // never fails
		for _, b := range random {
			if int(b) < fair {
				text = append(text, v1alpha1.TokenAlphabet[int(b)%len(v1alpha1.TokenAlphabet)])
			}
			if len(text) == length {
				return string(text)
			}
		}
	}
}
