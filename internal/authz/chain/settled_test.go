package chain

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Settled decides only if the answer does not depend on the time of the request.
func TestSettledDecidesOnlyWhatIsIndependentOfTime(t *testing.T) {
	h, dead := newHook(t), newHook(t)
	dead.Close()
	unreadable := []string{"request.extra['tenant'][0] == 'shop'"}
	for _, tc := range []struct {
		rule     string
		hook     *hook
		options  hookOptions
		name     string
		then     Authorizer
		decision verdict.Decision
		by, why  string
	}{
		{"an answer", h, hookOptions{}, "allow", nil, verdict.Allow, "authz.example.com", ""},
		{
			"an unreachable webhook that denies", dead,
			hookOptions{policy: "Deny"},
			"allow", nil, verdict.NoOpinion, "",
			"the webhook failed, and its failure policy denies the request",
		},
		{
			"an unreachable one before one that allows", dead,
			hookOptions{policy: "NoOpinion"},
			"allow", AlwaysAllow(),
			verdict.NoOpinion, "", "AlwaysAllow would then allow the request",
		},
		{
			"an unreachable one, and none that allows", dead,
			hookOptions{policy: "NoOpinion"},
			"allow", nil, verdict.NoOpinion, "",
			"passes the request to the next authorizers",
		},
		{
			"a condition that cannot be evaluated and denies", dead,
			hookOptions{policy: "Deny", conditions: unreadable},
			"allow",
			nil, verdict.Deny, "authz.example.com", "",
		},
		{
			"one that passes the request to one that allows", dead,
			hookOptions{policy: "NoOpinion", conditions: unreadable},
			"allow", AlwaysAllow(), verdict.Allow, "AlwaysAllow", "",
		},
		{
			"one that passes the request, and none that allows", dead,
			hookOptions{policy: "NoOpinion", conditions: unreadable},
			"allow", nil, verdict.NoOpinion, "", "",
		},
		{"an answer that allows and denies", h, hookOptions{}, "both", nil, verdict.Deny, "authz.example.com", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			links := built(t, Parts{}, tc.hook.yaml("authz.example.com", tc.options))
			if tc.then != nil {
				links = append(links, tc.then)
			}
			decision, by, err := links.Settled(t.Context(), about(tc.name))
			if decision != tc.decision || by != tc.by || (err != nil) != (tc.why != "") {
				t.Fatalf("got %s by %q, %v", decision, by, err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.why) {
				t.Errorf("want %q in %q", tc.why, err)
			}
		})
	}
}
