package bootstrap

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// gone reports whether the machine of an entry is terminated.
func (r *redemption) gone(ctx context.Context, entry *v1alpha1.NodeAttestation) (bool, error) {
	presence, ok := r.options.Attestor.(attest.Presence)
	if !ok || entry.Spec.Provider != r.options.Attestor.Name() {
		return false, nil
	}
	gone, err := presence.Gone(ctx, entry.Spec.InstanceID, entry.Spec.Region)
	if err != nil {
		return false, fmt.Errorf("find out whether %s, which has node name %s, still exists: %w",
			entry.Spec.InstanceID, entry.Spec.NodeName, err)
	}
	return gone, nil
}

// release revokes the entry of a terminated machine, so that its node name is free and its
// token and evidence are useless. A stolen client certificate of the machine stays valid for
// the name.
func (r *redemption) release(ctx context.Context, entry *v1alpha1.NodeAttestation) error {
	for range attempts {
		if entry.Phase() == v1alpha1.Revoked {
			return nil
		}
		ended := entry.DeepCopy()
		ended.Status.Phase = v1alpha1.Revoked
		meta.SetStatusCondition(&ended.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionRevoked, Status: metav1.ConditionTrue, ObservedGeneration: entry.Generation,
			LastTransitionTime: metav1.NewTime(r.options.Clock()), Reason: string(MachineGone),
			Message: "the machine has ended, and " + r.id.InstanceID + " asked for its node name",
		})
		_, err := r.options.Ledger.UpdateStatus(ctx, ended)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return err
		}
		if entry, err = r.options.Ledger.Get(ctx, entry.Name); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("take node name %s from %s: %w, %d times: try again", r.id.NodeName, entry.Name, errChanged, attempts)
}
