package chain

import (
	"context"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// AlwaysAllow is the link that allows every request.
func AlwaysAllow() Authorizer {
	return always{NameAlwaysAllow, Opinion{Decision: verdict.Allow, Reason: verdict.Reason{
		Code: CodeEverythingAllowed, Message: "every request is allowed",
	}}}
}

// AlwaysDeny is the link that allows no request. In spite of its name it has no
// opinion, as in an API server: authorizers after it may allow.
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

// Unavailable is a link in the place of an authorizer that cannot be asked: it
// fails with the error.
func Unavailable(name string, err error) Authorizer { return unavailable{name, err} }

type unavailable struct {
	name string
	err  error
}

func (u unavailable) Name() string { return u.name }

func (u unavailable) Authorize(context.Context, *access.Request, Detail) (Opinion, error) {
	return Opinion{Decision: verdict.NoOpinion}, u.err
}
