package chain

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// fixed is an authorizer with a fixed opinion.
type fixed struct {
	name     string
	decision verdict.Decision
	err      error
}

func (f fixed) Name() string { return f.name }

func (f fixed) Authorize(context.Context, *access.Request, Detail) (Opinion, error) {
	return Opinion{Decision: f.decision}, f.err
}

func TestChain(t *testing.T) {
	broken := errors.New("broken")
	none := func(name string) Authorizer { return fixed{name, verdict.NoOpinion, nil} }
	allow := func(name string) Authorizer { return fixed{name, verdict.Allow, nil} }
	deny := func(name string) Authorizer { return fixed{name, verdict.Deny, nil} }
	fail := func(name string) Authorizer { return fixed{name, verdict.Deny, broken} }
	for _, tc := range []struct {
		rule     string
		chain    Chain
		decision verdict.Decision
		by       string
		asked    int
		notAsked []string
		err      error
	}{
		{"the first that allows decides", Chain{none("a"), allow("b"), deny("c")}, verdict.Allow, "b", 2, []string{"c"}, nil},
		{"the first that denies decides", Chain{deny("a"), allow("b")}, verdict.Deny, "a", 1, []string{"b"}, nil},
		{"no authorizer has an opinion", Chain{none("a"), none("b")}, verdict.NoOpinion, "", 2, nil, nil},
		{"an empty chain has no opinion", nil, verdict.NoOpinion, "", 0, nil, nil},
		{"an error passes the request to the next", Chain{fail("a"), allow("b")}, verdict.Allow, "b", 2, nil, nil},
		{"an error is never an answer", Chain{fail("a"), none("b")}, verdict.NoOpinion, "", 2, nil, broken},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			decision, by, err := tc.chain.Decide(t.Context(), &access.Request{})
			if decision != tc.decision || by != tc.by || !errors.Is(err, tc.err) {
				t.Errorf("Decide = %s by %q, %v", decision, by, err)
			}
			got, err := tc.chain.Explain(t.Context(), &access.Request{})
			if got.Decision != tc.decision || got.DecidedBy != tc.by || !errors.Is(err, tc.err) {
				t.Errorf("Explain = %+v, %v", got, err)
			}
			if len(got.Opinions) != tc.asked || !slices.Equal(got.NotAsked, tc.notAsked) {
				t.Errorf("Explain = %d opinions, not asked %v", len(got.Opinions), got.NotAsked)
			}
		})
	}
}
