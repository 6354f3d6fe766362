package chain

import (
	"context"
	"testing"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Failures that occur in every API server are repeatable, others are not.
func TestRepeatableFailures(t *testing.T) {
	h, dead := newHook(t), newHook(t)
	dead.Close()
	unreadable := []string{"request.extra['tenant'][0] == 'shop'"}
	for _, policy := range []string{"NoOpinion", "Deny"} {
		byPolicy := verdict.NoOpinion
		if policy == "Deny" {
			byPolicy = verdict.Deny
		}
		for _, tc := range []struct {
			rule       string
			hook       *hook
			options    hookOptions
			name       string
			decision   verdict.Decision
			repeatable bool
		}{
			{"a condition that cannot be evaluated", h, hookOptions{conditions: unreadable}, "allow", byPolicy, true},
			{"the same before an unreachable webhook", dead, hookOptions{conditions: unreadable}, "allow", byPolicy, true},
			{"an answer that allows and denies", h, hookOptions{}, "both", verdict.Deny, true},
			{"an answer with an error's status", h, hookOptions{}, "403", byPolicy, false},
			{"an answer that is not a review", h, hookOptions{}, "garbage", byPolicy, false},
			{"an error that is retried", h, hookOptions{}, "500", byPolicy, false},
			{"an unreachable webhook", dead, hookOptions{}, "allow", byPolicy, false},
		} {
			t.Run(tc.rule+", "+policy, func(t *testing.T) {
				tc.options.policy = policy
				links := built(t, Parts{}, tc.hook.yaml("authz.example.com", tc.options))
				for name, ask := range map[string]func(context.Context) (Result, error){
					"Explain": func(ctx context.Context) (Result, error) { return links.Explain(ctx, about(tc.name)) },
					"Brief":   func(ctx context.Context) (Result, error) { return links.Brief(ctx, about(tc.name)) },
				} {
					got, _ := ask(t.Context())
					if o := got.Opinions[1]; got.Decision != tc.decision || o.Error == "" || o.Repeatable != tc.repeatable {
						t.Errorf("%s = %s: repeatable is %t, error %q", name, got.Decision, o.Repeatable, o.Error)
					}
				}
			})
		}
	}
}

func TestACachedContradictionIsRepeatable(t *testing.T) {
	h := newHook(t)
	link := built(t, Parts{}, h.yaml("authz.example.com", hookOptions{cached: true}))[1]
	for range 2 {
		if o, _ := link.Authorize(t.Context(), about("both"), Full); o.Decision != verdict.Deny || !o.Repeatable {
			t.Errorf("got %+v", o)
		}
	}
	if got := len(h.reviews()); got != 1 {
		t.Errorf("called %d times, want 1", got)
	}
}

func TestACancelledRequestIsNotRepeatable(t *testing.T) {
	h := newHook(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	link := built(t, Parts{}, h.yaml("authz.example.com", hookOptions{}))[1]
	if o, err := link.Authorize(ctx, about("both"), Full); err == nil || o.Repeatable {
		t.Errorf("got %+v, %v", o, err)
	}
}
