package evaluate_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestTheServersOwnUserIsNotDecidedByWhatItReads: its requests are how the server learns of NodeScopes and
// Quarantines.
func TestTheServersOwnUserIsNotDecidedByWhatItReads(t *testing.T) {
	c := newContained(t, v1alpha1.Enforce, "", "system:serviceaccount:kube-system:agent")
	c.unknown, c.scopesUnknown = errNotRead, errNotRead
	self, other := agentAsks("b", "delete", "pods", "web"), agentAsks("b", "delete", "pods", "web")
	other.User = "system:serviceaccount:kube-system:other"
	for mode, authorize := range c.modes() {
		if got, err := authorize(t.Context(), self); err != nil || got.Decision == verdict.Deny {
			t.Errorf("%s: %+v, %v", mode, got, err)
		}
		if got, err := authorize(t.Context(), other); err == nil || !got.FailClosed {
			t.Errorf("%s, another user: %+v, %v", mode, got, err)
		}
	}
	c.unknown, c.scopesUnknown = nil, nil
	for mode, authorize := range c.modes() {
		if got, err := authorize(t.Context(), self); err != nil || got.Decision != verdict.Deny {
			t.Errorf("%s, once they are known: %+v, %v", mode, got, err)
		}
	}
}

// TestObservingChangesNoAnswer: not even one that the NodeScope could not give.
func TestObservingChangesNoAnswer(t *testing.T) {
	c := newContained(t, v1alpha1.Observe, "")
	c.tooOld = source.Pods
	req := agentAsks("b", "delete", "pods", "web")
	for mode, authorize := range c.modes() {
		if got, err := authorize(t.Context(), req); err != nil || got.FailClosed || got.Scope != nil {
			t.Errorf("%s: %+v, %v", mode, got, err)
		}
	}
}

func TestTheCodeSaysThatNodeScopesAreTooOld(t *testing.T) {
	c := newContained(t, v1alpha1.Enforce, "")
	c.scopesUnknown = &staleness.Error{Source: "nodescopes"}
	for mode, authorize := range c.modes() {
		if got, err := authorize(t.Context(), agentAsks("b", "delete", "pods", "web")); err == nil || got.Code != decision.StateTooOld {
			t.Errorf("%s: %+v, %v", mode, got, err)
		}
	}
}
