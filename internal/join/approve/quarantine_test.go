package approve_test

import (
	"testing"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
)

func TestRequestsOfQuarantinedNodesAndCredentialsAreDenied(t *testing.T) {
	for kind, question := range wellFormed(t) {
		q := question(t)
		q.NodeQuarantine = "node-worker-1"
		wants(t, approve.Decide(q), policyv1alpha1.NodeQuarantined)

		q = question(t)
		q.CredentialQuarantine = "credential-0123456789ab"
		answer := approve.Decide(q)
		wants(t, answer, policyv1alpha1.CredentialQuarantined)
		if answer.Message == "" {
			t.Errorf("%s: the answer says nothing: %+v", kind, answer)
		}
	}
}

// A node that the ledger does not have may be left to other approvers, but not a quarantined one.
func TestQuarantinedNodesAreNotLeftToOtherApprovers(t *testing.T) {
	for _, unattested := range []approve.Unattested{approve.LeaveUnattested, approve.ApproveUnattested, approve.DenyUnattested} {
		for kind, question := range wellFormed(t) {
			q := question(t)
			if q.Entry != nil {
				continue // a token without an entry is denied in any case
			}
			q.Entries, q.Unattested = nil, unattested
			q.NodeQuarantine = "node-worker-1"
			if answer := approve.Decide(q); answer.Outcome != approve.Deny || answer.Code != policyv1alpha1.NodeQuarantined {
				t.Errorf("%s, unattested nodes %s: %+v", kind, unattested, answer)
			}
		}
	}
}

// The node reads the message of its own request. It names the node of the token's entry, which the
// request itself does not name, and nothing of the Quarantine.
func TestADenialSaysNothingOfTheQuarantine(t *testing.T) {
	for kind, question := range wellFormed(t) {
		q := question(t)
		q.NodeQuarantine = "stolen-kubeconfig"
		if got, want := approve.Decide(q).Message, "node worker-1 is quarantined"; got != want {
			t.Errorf("%s: the message is %q, want %q", kind, got, want)
		}
		q = question(t)
		q.CredentialQuarantine = "stolen-kubeconfig"
		if got, want := approve.Decide(q).Message, "the credential with which the request was made is quarantined"; got != want {
			t.Errorf("%s: the message is %q, want %q", kind, got, want)
		}
	}
}

func TestATokenWithoutAnEntryIsDeniedWhateverIsQuarantined(t *testing.T) {
	q := clientQuestion(t)
	q.Entry, q.Entries, q.NodeQuarantine = nil, nil, "node-worker-1"
	if answer := approve.Decide(q); answer.Outcome != approve.Deny {
		t.Errorf("%+v", answer)
	}
	q = clientQuestion(t)
	q.Entry.Status.Phase, q.NodeQuarantine = v1alpha1.Revoked, "node-worker-1"
	if answer := approve.Decide(q); answer.Outcome != approve.Deny {
		t.Errorf("%+v", answer)
	}
}
