package observe

import (
	"context"
	"errors"
	"regexp"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/review"
)

const (
	tokenRefused    = "token refused"
	tokenNotDecided = "token could not be examined"
)

// Authenticate logs the bearer tokens that get no user, by code and detail: who
// signed is in there as far as it is known. Each code has the share that a node has
// of other refusals, and so have errors.
func (r *Refusals) Authenticate(next review.Authenticate) review.Authenticate {
	return func(ctx context.Context, token string) (*iam.User, error) {
		user, err := next(ctx, token)
		switch refusal, refused := errors.AsType[*iam.Refusal](err); {
		case refused:
			r.Unasked(refusal)
		case err != nil && r.logger.Enabled() && r.limit.allows(typeAuthenticate+" "+outcomeError):
			r.log(tokenNotDecided, new(line).add("type", typeAuthenticate).add("error", withoutSecrets(err.Error())), nil)
		}
		return user, err
	}
}

// Unasked logs a token review that was refused without a look at its token.
func (r *Refusals) Unasked(refusal *iam.Refusal) {
	if r.logger.Enabled() && r.limit.allows(typeAuthenticate+" "+string(refusal.Code)) {
		r.log(tokenRefused, new(line).add("type", typeAuthenticate).
			add("code", string(refusal.Code)).add("detail", withoutSecrets(refusal.Detail)), nil)
	}
}

// secrets are the parts of a token that make it one, wherever an error of a library
// may have quoted them.
var secrets = regexp.MustCompile(`(?i)(x-amz-(?:signature|security-token)(?:=|%3d)|k8s-aws-v1\.)[^\s&"']*`)

// withoutSecrets is the last resort: whoever makes errors leaves tokens out of them.
func withoutSecrets(text string) string { return secrets.ReplaceAllString(text, "${1}…") }
