package bootstrap

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// The rest of a token's lifetime that is too short for a machine to use the token: one tenth of the
// lifetime, and at most half a minute, because the machine waits for the end of the token.
const (
	shortLife        = 10
	longestShortLife = 30 * time.Second
)

// repeat gives the machine its current token. It updates the entry first, so that newer
// evidence can be used for one token only. A token that cannot be derived again is replaced.
func (r *redemption) repeat(ctx context.Context, entry *v1alpha1.NodeAttestation) (*Grant, error) {
	key, err := r.keyOf(ctx, entry)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return r.reissue(ctx, entry)
	}
	if left := entry.Spec.TokenExpiration.Sub(r.options.Clock()); left < min(r.options.TokenTTL/shortLife, longestShortLife) {
		return nil, fmt.Errorf("bootstrap token %s expires in %s, too soon to be used: try again when it has expired",
			entry.Spec.TokenID, left.Round(time.Second))
	}
	updated := entry.DeepCopy()
	r.fillSpec(&updated.Spec)
	if !sameEvidence(&entry.Spec, &updated.Spec) {
		if entry, err = r.update(ctx, updated); err != nil {
			return nil, err
		}
	}
	return r.createToken(ctx, entry, key)
}

// keyOf returns the key from which the token of an entry is derived; nil if there is no such
// key. Another replica may have read a new key earlier.
func (r *redemption) keyOf(ctx context.Context, entry *v1alpha1.NodeAttestation) (*ledger.TokenKey, error) {
	if entry.Spec.TokenKeyID == "" {
		return nil, nil // it was created by a version that did not derive tokens
	}
	for _, get := range []func(context.Context) (*ledger.TokenKey, error){r.keys.current, r.keys.latest} {
		key, err := get(ctx)
		if err != nil || key.ID() == entry.Spec.TokenKeyID {
			return key, err
		}
	}
	return nil, nil
}

// reissue writes a new token to the entry. The approver writes to the same entry when a token
// is used: the first write wins.
func (r *redemption) reissue(ctx context.Context, entry *v1alpha1.NodeAttestation) (*Grant, error) {
	key, err := r.keys.current(ctx)
	if err != nil {
		return nil, err
	}
	updated := entry.DeepCopy()
	r.fillSpec(&updated.Spec)
	r.newToken(&updated.Spec, key)
	if entry, err = r.update(ctx, updated); err != nil {
		return nil, err
	}
	return r.createToken(ctx, entry, key)
}

func (r *redemption) newToken(spec *v1alpha1.NodeAttestationSpec, key *ledger.TokenKey) {
	spec.TokenID = freeID(r.options.Known, func() string { return randomText(v1alpha1.TokenIDLength) })
	spec.TokenKeyID = key.ID()
	spec.TokenExpiration = metav1.NewTime(r.options.Clock().Add(r.options.TokenTTL).UTC().Truncate(time.Second))
}

// freeID draws token ids until no entry names the id.
func freeID(known *ledger.Cache, draw func() string) string {
	for {
		if id := draw(); len(known.ByToken(id)) == 0 {
			return id
		}
	}
}

// createToken creates the Secret of the token that the entry names, or finds it. If another
// user's token has the same id, which is true for one in two thousand million, the machine
// gets a token that does not work, and another one after it has expired.
func (r *redemption) createToken(ctx context.Context, entry *v1alpha1.NodeAttestation, key *ledger.TokenKey) (*Grant, error) {
	token := key.Token(entry)
	_, err := r.options.Client.CoreV1().Secrets(ledger.TokenNamespace).Create(ctx, token.Secret(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create secret %s/%s: %w", ledger.TokenNamespace, ledger.TokenSecretName(token.ID), err)
	}
	return r.confirm(ctx, &Grant{Token: token, Repeated: err != nil})
}

// confirm returns a token if it is still the one that the entry names, and unused. Its Secret
// exists now, so that a later revocation finds it.
func (r *redemption) confirm(ctx context.Context, grant *Grant) (*Grant, error) {
	current, err := r.options.Ledger.Get(ctx, grant.Token.Entry)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errChanged
	case err != nil:
		return nil, err
	case current.UID != grant.Token.EntryUID, current.DeletionTimestamp != nil,
		(current.Phase() != v1alpha1.Issued || current.BoundKey() != "") && !r.certifiesSameKey(current),
		current.Spec.TokenID != grant.Token.ID, current.Spec.NodeName != r.id.NodeName:
		return nil, errChanged
	}
	return grant, nil
}

// randomText returns random characters of the token alphabet, uniformly distributed.
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
