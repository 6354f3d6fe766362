package bootstrap

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// noteInterval is the minimum time between two recorded refusals of a machine: the sender of
// its evidence can choose why it is refused.
const noteInterval = time.Minute

// recordRefusal records in the ledger that valid evidence of a machine was refused, because
// the sender may not be the machine. The record is for people: a request does not fail
// without it, and a concurrent change of the entry wins.
func (s *Service) recordRefusal(ctx context.Context, req *attest.Request, id *attest.Identity, refusal *attest.Refusal) {
	known, ok := s.options.Known.Get(v1alpha1.EntryName(id.Provider, id.InstanceID))
	if !ok {
		return
	}
	was := meta.FindStatusCondition(known.Status.Conditions, v1alpha1.ConditionRefused)
	if was != nil && s.options.Clock().Sub(was.LastTransitionTime.Time) < noteInterval {
		return
	}
	entry := known.DeepCopy()
	// Remove the condition first, so that it gets the time of this refusal.
	meta.RemoveStatusCondition(&entry.Status.Conditions, v1alpha1.ConditionRefused)
	meta.SetStatusCondition(&entry.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRefused, Status: metav1.ConditionTrue, ObservedGeneration: entry.Generation,
		LastTransitionTime: metav1.NewTime(s.options.Clock()), Reason: string(refusal.Code),
		Message: "a request from " + req.RemoteAddr.String() + " was refused: " + refusal.Detail,
	})
	_, _ = s.options.Ledger.UpdateStatus(ctx, entry) // see above
}
