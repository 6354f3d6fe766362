package chain

import (
	"context"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// NodeScope returns the authorizer of NodeScopes as part of a chain. It refuses or has no opinion,
// so it belongs before those that allow.
func NodeScope(a *nodescope.Authorizer) Authorizer { return nodeScope{a} }

type nodeScope struct{ authorizer *nodescope.Authorizer }

func (nodeScope) Name() string { return NameNodeScope }

func (n nodeScope) Authorize(_ context.Context, req *access.Request, detail Detail) (Opinion, error) {
	answer := n.authorizer.Decide(req)
	opinion := Opinion{Decision: answer.Decision, OnlyRefuses: true}
	switch detail {
	case DecisionOnly:
	case Brief:
		opinion.Reason = verdict.Reason{Code: answer.Code, Message: nodescope.Summary(answer.Code)}
	case Full:
		opinion.Reason = nodescope.Reason(req, &answer)
		if answer.Rule != "" {
			opinion.Rule = answer.Scope + " " + answer.Rule
		}
	}
	return opinion, nil
}

// Quarantine returns the authorizer of Quarantines as part of a chain. It refuses or has no opinion,
// so it belongs before those that allow. Current returns the set that counts, and an error if it is
// not known. Now may be nil.
func Quarantine(current func() (*quarantine.Set, error), now func() time.Time) Authorizer {
	if now == nil {
		now = time.Now
	}
	return quarantined{current, now}
}

type quarantined struct {
	current func() (*quarantine.Set, error)
	now     func() time.Time
}

func (quarantined) Name() string { return NameQuarantine }

func (q quarantined) Authorize(_ context.Context, req *access.Request, detail Detail) (Opinion, error) {
	set, err := q.current()
	if err != nil {
		return Opinion{Decision: verdict.NoOpinion, OnlyRefuses: true}, err
	}
	answer := set.Decide(req, q.now())
	opinion := Opinion{Decision: answer.Decision, OnlyRefuses: true}
	if detail != DecisionOnly {
		opinion.Reason = verdict.Reason{Code: answer.Code, Message: quarantine.Summary(answer.Code)}
	}
	if detail == Full && answer.Quarantine != "" {
		opinion.Message += " by Quarantine " + answer.Quarantine
		opinion.Rule = answer.Quarantine
	}
	return opinion, nil
}
