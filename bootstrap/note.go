package bootstrap

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// noteInterval is how long no further refusal of a machine is written down:
// whoever has its evidence chooses why it is refused.
const noteInterval = time.Minute

// note writes into the ledger that good evidence of a machine was refused: that
// may be somebody else than the machine. The note is for people; a request does
// not fail for want of it, and a change of the entry at the same time goes before
// it.
func (s *Service) note(ctx context.Context, req *attest.Request, id *attest.Identity, refusal *attest.Refusal) {
	known, ok := s.known.Get(v1alpha1.EntryName(id.Provider, id.InstanceID))
	if !ok {
		return
	}
	was := meta.FindStatusCondition(known.Status.Conditions, v1alpha1.ConditionRefused)
	if was != nil && s.now().Sub(was.LastTransitionTime.Time) < noteInterval {
		return
	}
	entry := known.DeepCopy()
	meta.RemoveStatusCondition(&entry.Status.Conditions, v1alpha1.ConditionRefused) // its time is to be that of the refusal
	meta.SetStatusCondition(&entry.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRefused, Status: metav1.ConditionTrue, ObservedGeneration: entry.Generation,
		LastTransitionTime: metav1.NewTime(s.now()), Reason: string(refusal.Code),
		Message: "a request from " + req.RemoteAddr.String() + " was refused: " + refusal.Detail,
	})
	_, _ = s.ledger.UpdateStatus(ctx, entry) // see above
}
