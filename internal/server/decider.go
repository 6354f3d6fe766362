package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// decider answers the webhooks with the opinions of an evaluator. Its errors are for operators.
type decider struct {
	*evaluate.Evaluator
	// tooOld counts answers of an endpoint that are errors because the state is too old.
	tooOld func(endpoint string)
}

// authorize wraps the evaluator of the configured mode.
func (d *decider) authorize(next decision.Authorize) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		opinion, err := next(ctx, req)
		if err == nil {
			return opinion, nil
		}
		if opinion.Code == decision.StateTooOld {
			d.tooOld(endpointOf(authorizePath))
		}
		if unread := new(evaluate.UnreadError); errors.As(err, &unread) {
			err = needsRights(unread.Resources)
		}
		return opinion, err
	}
}

// admit evaluates a write with NodeRestriction. A refusal that could depend on stale or unreadable
// state is an error.
func (d *decider) admit(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
	a := d.Admit(ctx, req)
	switch {
	case a.TooOld != nil:
		d.tooOld(endpointOf(admitPath))
		return undecided(a.Node, decision.StateTooOld, "the state of the cluster that this depends on is too old", a.TooOld)
	case len(a.Unread) > 0:
		return notReady(a.Node, "the server may not read all that this depends on", needsRights(a.Unread))
	}
	return a.Answer
}

func needsRights(missing []source.Missing) error {
	resources := make([]string, len(missing))
	for i, m := range missing {
		resources[i] = m.Resource.String()
	}
	return fmt.Errorf("not decided: the server may not read %s; bind the cluster role of node-authorizer to its user",
		strings.Join(resources, ", "))
}
