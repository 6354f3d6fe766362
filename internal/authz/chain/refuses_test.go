package chain

import (
	"context"
	"errors"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// refuser never allows.
type refuser struct{ fixed }

func (r refuser) Authorize(ctx context.Context, req *access.Request, detail Detail) (Opinion, error) {
	opinion, err := r.fixed.Authorize(ctx, req, detail)
	opinion.OnlyRefuses = true
	return opinion, err
}

// An allow does not count if an authorizer that only refuses failed before. A refusal counts.
func TestAnAuthorizerThatOnlyRefusesFails(t *testing.T) {
	broken := errors.New("broken")
	failed := refuser{fixed{"scope", verdict.NoOpinion, broken}}
	for _, tc := range []struct {
		rule     string
		then     verdict.Decision
		decision verdict.Decision
		fails    bool
		doubt    string
	}{
		{
			"a later allow is in doubt", verdict.Allow, verdict.NoOpinion, true,
			"authorizer scope: broken; then would then allow the request",
		},
		{"a later denial counts", verdict.Deny, verdict.Deny, false, ""},
		{"no opinion is still a refusal", verdict.NoOpinion, verdict.NoOpinion, true, ""},
	} {
		c := Chain{failed, fixed{"then", tc.then, nil}, fixed{"last", verdict.Allow, nil}}
		if tc.then == verdict.NoOpinion {
			c = c[:2]
		}
		decision, _, err := c.Decide(t.Context(), &access.Request{})
		if decision != tc.decision || errors.Is(err, broken) != tc.fails {
			t.Errorf("%s: Decide = %s, %v", tc.rule, decision, err)
		}
		if decision, _, err = c.Settled(t.Context(), &access.Request{}); decision != tc.decision || errors.Is(err, broken) != tc.fails {
			t.Errorf("%s: Settled = %s, %v", tc.rule, decision, err)
		}
		result, err := c.Explain(t.Context(), &access.Request{})
		if result.Decision != tc.decision || errors.Is(err, broken) != tc.fails || result.Doubt() != tc.doubt {
			t.Errorf("%s: Explain = %s, %v, doubt %q", tc.rule, result.Decision, err, result.Doubt())
		}
	}
}
