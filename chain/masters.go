package chain

import (
	"context"
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Masters is the link that every API server puts before those it is configured
// with: members of the group system:masters may do everything.
func Masters() Authorizer { return masters{} }

type masters struct{}

func (masters) Name() string { return NameMasters }

func (masters) Decide(_ context.Context, req *access.Request) (verdict.Decision, error) {
	if slices.Contains(req.Groups, NameMasters) {
		return verdict.Allow, nil
	}
	return verdict.NoOpinion, nil
}

func (m masters) Explain(ctx context.Context, req *access.Request) (Opinion, error) {
	decision, err := m.Decide(ctx, req)
	if decision == verdict.Allow {
		return Opinion{Decision: decision, Reason: verdict.Reason{
			Code:    CodePrivilegedGroup,
			Message: fmt.Sprintf("user %s is in group %s, which may do everything", req.User, NameMasters),
		}}, err
	}
	return Opinion{Decision: decision, Reason: verdict.Reason{
		Code:    CodeNotPrivileged,
		Message: fmt.Sprintf("user %s is not in group %s", req.User, NameMasters),
	}}, err
}

func (m masters) brief(ctx context.Context, req *access.Request) (Opinion, error) {
	decision, err := m.Decide(ctx, req)
	reason := verdict.Reason{Code: CodeNotPrivileged, Message: "the user is not in group " + NameMasters}
	if decision == verdict.Allow {
		reason = verdict.Reason{Code: CodePrivilegedGroup, Message: "members of " + NameMasters + " may do everything"}
	}
	return Opinion{Decision: decision, Reason: reason}, err
}
