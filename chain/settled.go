package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Settled answers like Decide what an API server answers whenever it is asked. It returns
// an error where the answer rests on an authorizer that could not be asked now: a webhook
// that is away says nothing about what it answered elsewhere or at another time, whatever
// its failure policy makes of that. What fails in the same way each time, such as a match
// condition that cannot be evaluated, is decided as the API server does.
func (c Chain) Settled(ctx context.Context, req *access.Request) (decision verdict.Decision, by string, err error) {
	if !slices.ContainsFunc(c, isWebhook) {
		return c.Decide(ctx, req)
	}
	result, _ := c.authorize(ctx, req, func(a Authorizer) Detail {
		if isWebhook(a) {
			return Brief // it says whether the webhook could be asked
		}
		return DecisionOnly
	})
	if why := result.Doubt(); why != "" {
		return verdict.NoOpinion, "", errors.New(why)
	}
	return result.Decision, result.DecidedBy, nil
}

func isWebhook(a Authorizer) bool {
	_, is := a.(*webhook)
	return is
}

// Doubt says why an answer cannot be relied on: authorizers failed that could have
// changed it. It is empty when none did. RBAC, which only allows, cannot change an
// allow; and what fails in every API server is decided there by the same failure policy.
func (r Result) Doubt() string {
	var failed []string
	for _, o := range r.Opinions {
		if o.Error == "" || o.Repeatable || o.Authorizer == NameRBAC && r.Decision == verdict.Allow {
			continue
		}
		failed = append(failed, o.Failure())
	}
	if len(failed) > 0 && r.Decision == verdict.Allow {
		failed = append(failed, fmt.Sprintf("%s would then allow the request", r.DecidedBy))
	}
	return strings.Join(failed, "; ")
}

// Failure says which authorizer failed, and why.
func (o Opinion) Failure() string {
	switch {
	case strings.Contains(o.Message, o.Error):
		return o.Message
	case o.Code == CodeWebhookFailed:
		return fmt.Sprintf("%s: %s: %s", o.Authorizer, o.Message, o.Error)
	}
	return fmt.Sprintf("authorizer %s: %s", o.Authorizer, o.Error)
}
