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

// Settled answers like Decide, for API servers at any time. It returns an error if the
// answer depends on an authorizer that could not be reached now, with any failure
// policy: such a webhook may have answered otherwise elsewhere or at another time.
// Repeatable failures, such as a match condition that cannot be evaluated, are decided
// as the API server does.
func (c Chain) Settled(ctx context.Context, req *access.Request) (decision verdict.Decision, by string, err error) {
	if !slices.ContainsFunc(c, isWebhook) {
		return c.Decide(ctx, req)
	}
	result, _ := c.authorize(ctx, req, func(a Authorizer) Detail {
		if isWebhook(a) {
			return Brief // it shows whether the webhook could be reached
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

// Doubt explains why an answer is uncertain: it names the failed authorizers that
// could have changed it. It is empty if there are none. RBAC, which only allows,
// cannot change an allow; an authorizer that only refuses cannot change a refusal; and a
// repeatable failure is decided in every API server by the same failure policy.
func (r Result) Doubt() string {
	var failed []string
	by := r.allowedBy()
	for _, o := range r.Opinions {
		if o.Error == "" || o.Repeatable || o.Authorizer == NameRBAC && by != "" || o.OnlyRefuses && by == "" {
			continue
		}
		failed = append(failed, o.Failure())
	}
	if len(failed) > 0 && by != "" {
		failed = append(failed, fmt.Sprintf("%s would then allow the request", by))
	}
	return strings.Join(failed, "; ")
}

// allowedBy returns the authorizer that allows, even if that is not the decision because one that only
// refuses failed; empty if none does.
func (r Result) allowedBy() string {
	for _, o := range r.Opinions {
		if o.Decision == verdict.Allow {
			return o.Authorizer
		}
	}
	return ""
}

// Failure describes which authorizer failed, and why.
func (o Opinion) Failure() string {
	switch {
	case strings.Contains(o.Message, o.Error):
		return o.Message
	case o.Code == CodeWebhookFailed:
		return fmt.Sprintf("%s: %s: %s", o.Authorizer, o.Message, o.Error)
	}
	return fmt.Sprintf("authorizer %s: %s", o.Authorizer, o.Error)
}
