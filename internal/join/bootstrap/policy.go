package bootstrap

import (
	"context"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Policy says when a machine that has used its token gets another one.
type Policy string

const (
	// Never: the machine has to be replaced, or an operator has to delete its entry in
	// the ledger.
	Never Policy = "Never"
	// NodeAbsent: if there is no node with the name in its entry.
	NodeAbsent Policy = "NodeAbsent"
	// NewerEvidence: if its evidence is newer than the evidence before, as after a stop
	// and start of a virtual machine.
	NewerEvidence Policy = "NewerEvidence"
	// Always: if its evidence is valid.
	Always Policy = "Always"
)

// outlivesNode reports whether a machine can be attested again while its node exists.
func (p Policy) outlivesNode() bool { return p == NewerEvidence || p == Always }

// mayRepeat returns a refusal with the code unless the policy allows a new token for the
// machine of the entry.
func (r *redemption) mayRepeat(ctx context.Context, entry *v1alpha1.NodeAttestation, code verdict.Code) error {
	was := describe(entry)
	switch r.options.Reattestation {
	case Always:
		return nil
	case NewerEvidence:
		if r.evidenceTime().After(evidenceTimeOf(entry)) {
			return nil
		}
		return attest.Refuse(code, "%s, and this evidence, of %s, is not newer than the evidence before, of %s",
			was, written(r.evidenceTime()), written(evidenceTimeOf(entry)))
	case NodeAbsent:
		exists, err := r.nodeExists(ctx, entry.Spec.NodeName)
		if err != nil || !exists {
			return err
		}
		return attest.Refuse(code, "%s, and node %s exists: delete the node to let the machine join again", was, entry.Spec.NodeName)
	}
	return attest.Refuse(code, "%s: delete nodeattestation %s to let the machine join again, or choose another policy than %s",
		was, entry.Name, Never)
}

func describe(entry *v1alpha1.NodeAttestation) string {
	return string(entry.Phase()) + " as node " + entry.Spec.NodeName + " with token " + entry.Spec.TokenID +
		" of " + written(entry.Spec.AttestedTime.Time)
}

// evidenceTime is the time of the evidence, in the precision of the ledger.
func (r *redemption) evidenceTime() time.Time { return r.id.Issued.Truncate(time.Second) }

func evidenceTimeOf(entry *v1alpha1.NodeAttestation) time.Time {
	if entry.Spec.EvidenceTime == nil {
		return time.Time{}
	}
	return entry.Spec.EvidenceTime.Time
}

func written(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format(time.RFC3339)
}
