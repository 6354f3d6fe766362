package observe

import (
	"context"
	"errors"
	"regexp"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/review"
)

const (
	tokenRefused    = "token refused"
	tokenNotDecided = "token could not be examined"
)

// Authenticate logs the bearer tokens that do not authenticate a user, with code and
// detail. The detail names the signer if it is known. The lines of each code, and the lines of
// errors, have the same share of the limit as one node has.
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

// Unasked logs a token review that was refused without verifying its token.
func (r *Refusals) Unasked(refusal *iam.Refusal) {
	if r.logger.Enabled() && r.limit.allows(typeAuthenticate+" "+string(refusal.Code)) {
		r.log(tokenRefused, new(line).add("type", typeAuthenticate).
			add("code", string(refusal.Code)).add("detail", withoutSecrets(refusal.Detail)), nil)
	}
}

// secrets matches the secret parts of a token, in case the error of a library quotes them.
var secrets = regexp.MustCompile(`(?i)(x-amz-(?:signature|security-token)(?:=|%3d)|k8s-aws-v1\.)[^\s&"']*`)

// withoutSecrets is the last line of defense: errors should not contain tokens at all.
func withoutSecrets(text string) string { return secrets.ReplaceAllString(text, "${1}…") }
