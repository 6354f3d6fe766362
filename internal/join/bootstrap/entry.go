package bootstrap

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// attempt finds or creates the machine's entry, and then its token. It returns errChanged if
// another request changed them at the same time.
func (r *redemption) attempt(ctx context.Context) (*Grant, error) {
	if _, known := r.options.Known.Get(r.name); known {
		entry, err := r.options.Ledger.Get(ctx, r.name)
		if err == nil {
			return r.existing(ctx, entry)
		}
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return r.createEntry(ctx)
}

// createEntry creates the entry, for the first request of a machine.
func (r *redemption) createEntry(ctx context.Context) (*Grant, error) {
	key, err := r.keys.current(ctx)
	if err != nil {
		return nil, err
	}
	entry := &v1alpha1.NodeAttestation{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	r.fillSpec(&entry.Spec)
	r.newToken(&entry.Spec, key)
	created, err := r.options.Ledger.Create(ctx, entry)
	if err == nil {
		return r.createToken(ctx, created, key)
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	found, err := r.options.Ledger.Get(ctx, r.name)
	if apierrors.IsNotFound(err) {
		return nil, errChanged
	}
	if err != nil {
		return nil, err
	}
	return r.existing(ctx, found)
}

// existing handles a machine that has an entry: it gets the token of the entry, a new one,
// or a refusal.
func (r *redemption) existing(ctx context.Context, entry *v1alpha1.NodeAttestation) (*Grant, error) {
	switch {
	case entry.Spec.Provider != r.id.Provider || entry.Spec.InstanceID != r.id.InstanceID:
		return nil, fmt.Errorf("nodeattestation %s is of %s of provider %s: "+
			"delete it to let another machine have this name in the ledger",
			entry.Name, entry.Spec.InstanceID, entry.Spec.Provider)
	case entry.Phase() == v1alpha1.Revoked:
		return nil, revoked(entry)
	case entry.DeletionTimestamp != nil:
		return nil, fmt.Errorf("nodeattestation %s is being deleted: try again when it is gone", entry.Name)
	case (r.options.Reattestation != Always || r.id.SingleUse) && r.evidenceTime().Before(evidenceTimeOf(entry)):
		return nil, attest.Refuse(AlreadyAttested, "the evidence of %s, of %s, is older than the evidence before, of %s",
			r.id.InstanceID, written(r.evidenceTime()), written(evidenceTimeOf(entry)))
	case r.id.SingleUse && entry.Spec.EvidenceDigest == r.digest():
		return nil, attest.Refuse(EvidenceUsed, "the evidence of %s was accepted before, at %s", r.id.InstanceID,
			written(entry.Spec.AttestedTime.Time))
	case entry.Spec.NodeName != r.id.NodeName:
		return r.again(ctx, entry, NameChanged)
	case entry.Spec.PublicKey != r.id.PublicKey:
		return r.again(ctx, entry, PublicKeyChanged)
	case r.certifiesSameKey(entry):
		return r.repeat(ctx, entry)
	case entry.Phase() != v1alpha1.Issued, entry.BoundKey() != "":
		return r.again(ctx, entry, AlreadyAttested)
	case !r.options.Clock().Before(entry.Spec.TokenExpiration.Time):
		return r.reissue(ctx, entry)
	}
	return r.repeat(ctx, entry)
}

// certifiesSameKey reports whether the token was used, and is still valid, for the key that this evidence names: a machine
// that was interrupted before it had the certificate asks again. No other key gets a certificate by that.
func (r *redemption) certifiesSameKey(entry *v1alpha1.NodeAttestation) bool {
	return r.id.PublicKey != "" && entry.BoundKey() == r.id.PublicKey && entry.Phase() != v1alpha1.Registered &&
		r.options.Clock().Before(entry.Spec.TokenExpiration.Time)
}

// again gives the machine a new token instead of the old one, if the policy allows it.
func (r *redemption) again(ctx context.Context, entry *v1alpha1.NodeAttestation, code verdict.Code) (*Grant, error) {
	if err := r.mayRepeat(ctx, entry, code); err != nil {
		return nil, err
	}
	return r.reissue(ctx, entry)
}

// update writes the entry, unless it was changed since it was read.
func (r *redemption) update(ctx context.Context, entry *v1alpha1.NodeAttestation) (*v1alpha1.NodeAttestation, error) {
	updated, err := r.options.Ledger.Update(ctx, entry)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, errChanged
	}
	return updated, err
}

// fillSpec sets the spec to what the evidence says about the machine.
func (r *redemption) fillSpec(spec *v1alpha1.NodeAttestationSpec) {
	spec.Provider, spec.InstanceID, spec.NodeName = r.id.Provider, r.id.InstanceID, r.id.NodeName
	spec.Account, spec.Region, spec.Zone = r.id.Account, r.id.Region, r.id.Zone
	spec.Names = sorted(r.id.Names)
	spec.Addresses = nil
	for _, address := range r.id.Addresses {
		spec.Addresses = append(spec.Addresses, address.Unmap().WithZone("").String())
	}
	spec.Addresses = unique(spec.Addresses)
	if spec.RemoteAddress = ""; r.req.RemoteAddr.IsValid() {
		spec.RemoteAddress = r.req.RemoteAddr.Unmap().WithZone("").String()
	}
	spec.PublicKey, spec.EvidenceDigest = r.id.PublicKey, r.digest()
	spec.Description = clip(r.id.Description, maxDescription)
	if spec.EvidenceTime = nil; !r.id.Issued.IsZero() {
		spec.EvidenceTime = &metav1.Time{Time: r.evidenceTime().UTC()}
	}
	spec.AttestedTime = metav1.NewTime(r.options.Clock().UTC().Truncate(time.Second))
}

// maxDescription is the maximum length of a description in the ledger, as in its schema.
const maxDescription = 512

// digest is the digest of the evidence as in the ledger.
func (r *redemption) digest() string { return "sha256:" + hex.EncodeToString(r.id.Digest[:]) }

// sameEvidence reports whether two specs have the same facts about the machine, and the same
// time of the evidence.
func sameEvidence(a, b *v1alpha1.NodeAttestationSpec) bool {
	return slices.Equal(a.Names, b.Names) && slices.Equal(a.Addresses, b.Addresses) &&
		a.Account == b.Account && a.Region == b.Region && a.Zone == b.Zone && a.EvidenceTime.Equal(b.EvidenceTime) &&
		a.PublicKey == b.PublicKey && a.EvidenceDigest == b.EvidenceDigest
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

// unique removes repeated texts and keeps the order.
func unique(list []string) []string {
	var kept []string
	for _, s := range list {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}
