package containment

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// Each rule of each NodeScope in the folder scopes lets a token act for its own node, and not for another one.
// In the mode Observe, and without the scope, RBAC allows both.
func TestMatrix(t *testing.T) {
	all := matrices(t)
	for _, m := range modes {
		must(t, plane.setMode(t.Context(), all, m))
		for _, x := range all {
			must(t, x.try(t.Context(), m))
		}
	}
	must(t, plane.setMode(t.Context(), all, none))
	for _, x := range all {
		t.Run(x.agent.name, func(t *testing.T) { x.check(t) })
	}
	compareGolden(t, "containment-matrix.md", matrixDocument(all))
}

func matrices(t *testing.T) (all []*matrix) {
	t.Helper()
	agents, err := readAgents()
	must(t, err)
	if len(agents) < 2 {
		t.Fatalf("the folder scopes has %d NodeScopes", len(agents))
	}
	served, err := plane.customResources(t.Context(), agents)
	must(t, err)
	for _, a := range agents {
		must(t, a.install(t.Context(), plane))
		must(t, plane.ownObjects(t.Context(), a, served))
		x, err := plane.prepareMatrix(t.Context(), a, served)
		must(t, err)
		all = append(all, x)
	}
	return all
}

func (x *matrix) check(t *testing.T) {
	named, foreign := 0, 0
	for _, r := range x.rows {
		ends := r.rule == "" && x.agent.scope.Spec.Otherwise != v1alpha1.Allow
		expect(t, r.probe.own, r, r.own, ends)
		if r.rule != "" {
			named++
		}
		if r.probe.foreign != nil {
			foreign++
			expect(t, *r.probe.foreign, r, r.foreign, true)
		}
	}
	if named == 0 {
		t.Error("no rule was tried")
	}
	withoutNode := x.agent.scope.Spec.TokensWithoutNode != v1alpha1.Allow
	if x.unboundAnswer[none].refused() || x.unboundAnswer[observe].refused() || x.unboundAnswer[enforce].refused() != withoutNode {
		t.Errorf("with a token that is bound to nothing: %v", x.unboundAnswer)
	}
	t.Logf("%d requests by rules, %d of them also about another node, and %d that no rule names", named, foreign, len(x.rows)-named)
}

// expect checks that a request is refused in the mode Enforce only, or never.
func expect(t *testing.T, sent request, r *row, answers map[mode]answer, refused bool) {
	t.Helper()
	if answers[none].refused() || answers[none].status >= 500 || answers[none].status == 422 || answers[none].status == 400 {
		t.Errorf("%s %s: %s without a scope: %s", r.rule, sent, r.verb, answers[none])
		return
	}
	if difference := answers[observe].differs(answers[none]); difference != "" {
		t.Errorf("%s %s: in the mode Observe, and without a scope: %s", r.rule, sent, difference)
	}
	if refused {
		if !answers[enforce].refused() {
			t.Errorf("%s %s: %s in the mode Enforce, want a refusal", r.rule, sent, answers[enforce])
		}
	} else if difference := answers[enforce].differs(answers[none]); difference != "" {
		t.Errorf("%s %s: in the mode Enforce, and without a scope: %s", r.rule, sent, difference)
	}
}
