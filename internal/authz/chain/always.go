package chain

import (
	"context"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// AlwaysAllow returns an authorizer that allows every request.
func AlwaysAllow() Authorizer {
	return always{NameAlwaysAllow, Opinion{Decision: verdict.Allow, Reason: verdict.Reason{
		Code: CodeEverythingAllowed, Message: "every request is allowed",
	}}}
}

// AlwaysDeny returns an authorizer that allows no request. In spite of its name it
// has no opinion, as in an API server: later authorizers may allow.
func AlwaysDeny() Authorizer {
	return always{NameAlwaysDeny, Opinion{Decision: verdict.NoOpinion, Reason: verdict.Reason{
		Code: CodeNothingAllowed, Message: "no request is allowed",
		Hint: "AlwaysDeny does not deny but has no opinion: authorizers after it may allow",
	}}}
}

type always struct {
	name    string
	opinion Opinion
}

func (a always) Name() string { return a.name }

func (a always) Authorize(context.Context, *access.Request, Detail) (Opinion, error) {
	return a.opinion, nil
}

// Unavailable returns a placeholder for an authorizer that cannot be reached. It
// always fails with the error.
func Unavailable(name string, err error) Authorizer { return unavailable{name, err} }

type unavailable struct {
	name string
	err  error
}

func (u unavailable) Name() string { return u.name }

func (u unavailable) Authorize(context.Context, *access.Request, Detail) (Opinion, error) {
	return Opinion{Decision: verdict.NoOpinion}, u.err
}
