package observe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/containment"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/observe"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// stubContainment has two NodeScopes, one of which is broken.
type stubContainment struct{}

func (stubContainment) Stats() []containment.Stats {
	return []containment.Stats{{
		Resource: "nodescopes", Changes: 7, LastChange: time.Unix(1_900_000_000, 0),
		Objects: map[verdict.Code]int{containment.Accepted: 1, containment.Invalid: 1},
	}, {Resource: "quarantines"}}
}

func (stubContainment) QuarantinedNodes() int { return 3 }

func TestContainmentIsExported(t *testing.T) {
	m := observe.NewMetrics()
	m.WatchContainment(stubContainment{})
	want(t, m,
		`node_authorizer_containment_objects{code="Accepted",resource="nodescopes"} 1`,
		`node_authorizer_containment_objects{code="Invalid",resource="nodescopes"} 1`,
		`node_authorizer_containment_objects{code="Expired",resource="quarantines"} 0`,
		`node_authorizer_containment_changes_total{resource="nodescopes"} 7`,
		`node_authorizer_containment_last_change_timestamp_seconds{resource="nodescopes"} 1.9e+09`,
		`node_authorizer_quarantined_nodes 3`,
	)
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, `node_authorizer_containment_last_change_timestamp_seconds{resource="quarantines"`) {
			t.Errorf("what never changed has a time: %s", line)
		}
	}
}

func TestRefusalsOfNodeScopesAreCounted(t *testing.T) {
	const agent = "system:serviceaccount:kube-system:cilium"
	m := observe.NewMetrics()
	for _, enforced := range []bool{true, false} {
		_, _ = m.Authorize(says(decision.Opinion{
			Decision: verdict.NoOpinion, Scope: &decision.ScopeRefusal{Account: agent, Code: nodescope.ScopeNoRule, Enforced: enforced},
		}, nil))(t.Context(), &access.Request{User: agent})
	}
	m.Admit(func(context.Context, *noderestriction.Request) noderestriction.Answer {
		return noderestriction.Answer{Decision: verdict.Deny, Code: nodescope.ScopeNameNotNode, Status: 403}
	})(t.Context(), &noderestriction.Request{User: agent})
	want(t, m,
		`node_authorizer_nodescope_refusals_total{account="kube-system/cilium",code="ScopeNoRule",mode="Enforce"} 1`,
		`node_authorizer_nodescope_refusals_total{account="kube-system/cilium",code="ScopeNoRule",mode="Observe"} 1`,
		`node_authorizer_nodescope_refusals_total{account="kube-system/cilium",code="ScopeNameNotNode",mode="Enforce"} 1`,
	)
}

// TestAccountsOfNodeScopesAreLimited: a NodeScope about a namespace is about any number of accounts.
func TestAccountsOfNodeScopesAreLimited(t *testing.T) {
	m := observe.NewMetrics()
	for i := range 1000 {
		m.ScopeRefused(&decision.ScopeRefusal{Account: fmt.Sprint("system:serviceaccount:shop:a-", i), Code: nodescope.ScopeNoRule})
	}
	m.ScopeRefused(&decision.ScopeRefusal{Account: "system:serviceaccount:shop:a-0", Code: nodescope.ScopeNoRule})
	series := 0
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "node_authorizer_nodescope_refusals_total{") {
			series++
		}
	}
	if series != 201 {
		t.Errorf("there are %d time series", series)
	}
	want(t, m,
		`node_authorizer_nodescope_refusals_total{account="shop/a-0",code="ScopeNoRule",mode="Observe"} 2`,
		`node_authorizer_nodescope_refusals_total{account="other",code="ScopeNoRule",mode="Observe"} 800`,
	)
}
