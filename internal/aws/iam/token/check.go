package token

import (
	"errors"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// check finds mistakes in options before any request is sent.
//
// Source: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
func (o Options) check() error {
	if o.ClusterID == "" {
		return errors.New("the id of the cluster is required")
	}
	if err := iam.CheckClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("invalid cluster: %w", err)
	}
	switch {
	case o.RoleARN == "" && (o.SessionName != "" || o.ExternalID != ""):
		return errors.New("a session name or an external id requires a role to assume")
	case o.RoleARN == "":
		return nil
	case o.SessionName != "" && !isMadeOf(o.SessionName, "_+=,.@-", 64):
		return fmt.Errorf("the session name %q is invalid: want 2 to 64 letters, digits and _+=,.@-", o.SessionName)
	case o.ExternalID != "" && !isMadeOf(o.ExternalID, "_+=,.@:/-", 1224):
		// The external id may be a secret between two accounts.
		return errors.New("the external id is invalid: want 2 to 1224 letters, digits and _+=,.@:/-")
	}
	return checkRole(o.RoleARN)
}

// isMadeOf reports whether a text has between 2 and most characters, all letters, digits
// or punctuation.
func isMadeOf(text, punctuation string, most int) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(punctuation, r)
	}
	return len(text) >= 2 && len(text) <= most && strings.IndexFunc(text, odd) < 0
}

// checkRole checks the ARN of a role, and explains common mistakes.
func checkRole(text string) error {
	const like = "write it like arn:aws:iam::111122223333:role/NAME"
	arn, err := iam.ParseARN(text)
	switch {
	case err != nil && !strings.HasPrefix(text, "arn:"):
		return fmt.Errorf("the role %q is not an ARN: %s", text, like)
	case err != nil:
		return fmt.Errorf("the role cannot be assumed: %w: %s", err, like)
	}
	canonical, session, err := iam.Canonical(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not the ARN of a role: %s", text, like)
	case session != "":
		return fmt.Errorf("%q is a session, not a role: write %s", text, canonical)
	case arn.Service != "iam" || !strings.HasPrefix(arn.Resource, "role/"):
		return fmt.Errorf("%q is not a role: %s", text, like)
	}
	return nil
}
