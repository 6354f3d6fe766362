package bootstrap

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/ledger"
)

// shortLife is which part of a token's life is too short for a machine to use it
// in.
const shortLife = 10

// repeat gives the machine the token that it has. What the ledger says of the
// machine is brought up to date first, so that newer evidence is good for one
// token only. A token that cannot be made again is replaced.
func (r *redemption) repeat(ctx context.Context, entry *v1alpha1.NodeAttestation) (*Grant, error) {
	key, err := r.keyOf(ctx, entry)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return r.reissue(ctx, entry)
	}
	if left := entry.Spec.TokenExpiration.Sub(r.now()); left < r.ttl/shortLife {
		return nil, fmt.Errorf("bootstrap token %s ends in %s, too soon to be used: try again when it has ended", entry.Spec.TokenID, left.Round(time.Second))
	}
	updated := entry.DeepCopy()
	r.write(&updated.Spec)
	if !sameEvidence(&entry.Spec, &updated.Spec) {
		if entry, err = r.update(ctx, updated); err != nil {
			return nil, err
		}
	}
	return r.mint(ctx, entry, key)
}

// keyOf returns the key from which the token of an entry is derived; nil if there is
// no such key any more. Another replica may have heard of a new key earlier.
func (r *redemption) keyOf(ctx context.Context, entry *v1alpha1.NodeAttestation) (*ledger.TokenKey, error) {
	if entry.Spec.TokenKeyID == "" {
		return nil, nil // it was made by a version that derived no tokens
	}
	for _, get := range []func(context.Context) (*ledger.TokenKey, error){r.keys.current, r.keys.latest} {
		key, err := get(ctx)
		if err != nil || key.ID() == entry.Spec.TokenKeyID {
			return key, err
		}
	}
	return nil, nil
}

// reissue writes a new token into the entry. The approver writes into the same entry
// when a token is used: whoever comes first wins.
func (r *redemption) reissue(ctx context.Context, entry *v1alpha1.NodeAttestation) (*Grant, error) {
	key, err := r.keys.current(ctx)
	if err != nil {
		return nil, err
	}
	updated := entry.DeepCopy()
	r.write(&updated.Spec)
	r.newToken(&updated.Spec, key)
	if entry, err = r.update(ctx, updated); err != nil {
		return nil, err
	}
	return r.mint(ctx, entry, key)
}

func (r *redemption) newToken(spec *v1alpha1.NodeAttestationSpec, key *ledger.TokenKey) {
	spec.TokenID = freeID(r.known, func() string { return randomText(v1alpha1.TokenIDLength) })
	spec.TokenKeyID = key.ID()
	spec.TokenExpiration = metav1.NewTime(r.now().Add(r.ttl).UTC().Truncate(time.Second))
}

// freeID draws the id of a token until no entry names it.
func freeID(known *ledger.Cache, draw func() string) string {
	for {
		if id := draw(); len(known.ByToken(id)) == 0 {
			return id
		}
	}
}

// mint creates the token that the entry announces, or finds it created. If somebody
// else's token has the same id, which one in two thousand million has, the machine
// gets one that does not work, and another when that has ended.
func (r *redemption) mint(ctx context.Context, entry *v1alpha1.NodeAttestation, key *ledger.TokenKey) (*Grant, error) {
	token := key.Token(entry)
	_, err := r.client.CoreV1().Secrets(ledger.TokenNamespace).Create(ctx, token.Secret(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create secret %s/%s: %w", ledger.TokenNamespace, ledger.TokenSecretName(token.ID), err)
	}
	return r.confirmed(ctx, &Grant{Token: token, Repeated: err != nil})
}

// confirmed returns a token if it is still the one that the entry announces, and
// unused, now that its Secret exists: whoever revokes the machine from here on
// finds the Secret.
func (r *redemption) confirmed(ctx context.Context, grant *Grant) (*Grant, error) {
	current, err := r.ledger.Get(ctx, grant.Token.Entry)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errChanged
	case err != nil:
		return nil, err
	case current.UID != grant.Token.EntryUID, current.DeletionTimestamp != nil, current.Phase() != v1alpha1.Issued,
		current.BoundKey() != "", current.Spec.TokenID != grant.Token.ID, current.Spec.NodeName != r.id.NodeName:
		return nil, errChanged
	}
	return grant, nil
}

// randomText returns random characters of the alphabet of tokens, each as likely
// as the others.
func randomText(length int) string {
	text := make([]byte, 0, length)
	for random := make([]byte, 2*length); ; {
		rand.Read(random) // never fails
		for _, b := range random {
			if c, ok := ledger.TokenCharacter(b); ok {
				text = append(text, c)
			}
			if len(text) == length {
				return string(text)
			}
		}
	}
}
