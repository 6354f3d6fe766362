package chain

import (
	"context"
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Masters returns the authorizer that every API server puts before the configured
// ones: members of the group system:masters may do everything.
func Masters() Authorizer { return masters{} }

type masters struct{}

func (masters) Name() string { return NameMasters }

func (masters) Authorize(_ context.Context, req *access.Request, detail Detail) (Opinion, error) {
	opinion := Opinion{Decision: verdict.NoOpinion, Reason: verdict.Reason{
		Code: CodeNotPrivileged, Message: "the user is not in group " + NameMasters,
	}}
	if Privileged(req) {
		opinion = Opinion{Decision: verdict.Allow, Reason: verdict.Reason{
			Code: CodePrivilegedGroup, Message: "members of " + NameMasters + " may do everything",
		}}
	}
	if detail == Full {
		opinion.Message = privilegeOf(req.User, opinion.Decision)
	}
	return opinion, nil
}

func privilegeOf(user string, decision verdict.Decision) string {
	if decision == verdict.Allow {
		return fmt.Sprintf("user %s is in group %s, which may do everything", user, NameMasters)
	}
	return fmt.Sprintf("user %s is not in group %s", user, NameMasters)
}

// Privileged reports whether the user is in the group that may do everything.
func Privileged(req *access.Request) bool { return slices.Contains(req.Groups, NameMasters) }
