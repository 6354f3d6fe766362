package observe_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
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

// Policy has a scope that names accounts, and one about all accounts of a namespace.
func (stubContainment) Policy() *atomic.Pointer[nodescope.Policy] {
	subjects := []v1alpha1.Subject{{Namespace: "kube-system", Name: "cilium"}, {Namespace: "shop", Name: "named"}, {Namespace: "shop"}}
	scope, errs := nodescope.Compile(&v1alpha1.NodeScope{Spec: v1alpha1.NodeScopeSpec{Subjects: subjects, Mode: v1alpha1.Enforce}})
	if len(errs) > 0 {
		panic(errs.ToAggregate())
	}
	policy, _ := nodescope.NewPolicy([]*nodescope.Scope{scope})
	pointer := new(atomic.Pointer[nodescope.Policy])
	pointer.Store(policy)
	return pointer
}

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
	m.WatchContainment(stubContainment{})
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

// TestOnlyAccountsThatScopesNameHaveMetrics: whoever may create SubjectAccessReviews can ask for any account.
func TestOnlyAccountsThatScopesNameHaveMetrics(t *testing.T) {
	m := observe.NewMetrics()
	m.WatchContainment(stubContainment{})
	refused := func(user string) {
		m.ScopeRefused(&decision.ScopeRefusal{Account: user, Code: nodescope.ScopeNoRule})
	}
	for i := range 1000 {
		refused(fmt.Sprint("system:serviceaccount:shop:a-", i))
		refused(fmt.Sprint("system:serviceaccount:elsewhere-", i, ":a"))
	}
	refused("system:serviceaccount:shop:named")
	refused("system:serviceaccount:shop:")
	refused("system:node:worker-1")
	want(t, m,
		`node_authorizer_nodescope_refusals_total{account="shop/named",code="ScopeNoRule",mode="Observe"} 1`,
		`node_authorizer_nodescope_refusals_total{account="shop/*",code="ScopeNoRule",mode="Observe"} 1000`,
		`node_authorizer_nodescope_refusals_total{account="other",code="ScopeNoRule",mode="Observe"} 1002`,
	)
	if n := series(t, m); n != 3 {
		t.Errorf("there are %d time series", n)
	}
}

func series(t *testing.T, m *observe.Metrics) (n int) {
	t.Helper()
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "node_authorizer_nodescope_refusals_total{") {
			n++
		}
	}
	return n
}

// manyAccounts has a scope for each of 1000 accounts.
type manyAccounts struct{ stubContainment }

func (manyAccounts) Policy() *atomic.Pointer[nodescope.Policy] {
	var scopes []*nodescope.Scope
	for i := range 1000 {
		scope, _ := nodescope.Compile(&v1alpha1.NodeScope{Spec: v1alpha1.NodeScopeSpec{
			Subjects: []v1alpha1.Subject{{Namespace: "shop", Name: fmt.Sprint("a-", i)}}, Mode: v1alpha1.Enforce,
		}})
		scopes = append(scopes, scope)
	}
	pointer := new(atomic.Pointer[nodescope.Policy])
	policy, _ := nodescope.NewPolicy(scopes)
	pointer.Store(policy)
	return pointer
}

func TestAccountsOfNodeScopesAreLimited(t *testing.T) {
	m := observe.NewMetrics()
	m.WatchContainment(manyAccounts{})
	for i := range 1000 {
		m.ScopeRefused(&decision.ScopeRefusal{Account: fmt.Sprint("system:serviceaccount:shop:a-", i), Code: nodescope.ScopeNoRule})
	}
	m.ScopeRefused(&decision.ScopeRefusal{Account: "system:serviceaccount:shop:a-0", Code: nodescope.ScopeNoRule})
	if n := series(t, m); n != 201 {
		t.Errorf("there are %d time series", n)
	}
	want(t, m,
		`node_authorizer_nodescope_refusals_total{account="shop/a-0",code="ScopeNoRule",mode="Observe"} 2`,
		`node_authorizer_nodescope_refusals_total{account="other",code="ScopeNoRule",mode="Observe"} 800`,
	)
}
