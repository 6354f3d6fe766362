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

// decider answers the webhooks with what an evaluator says, in words for whoever runs
// the server.
type decider struct {
	*evaluate.Evaluator
	// tooOld counts answers of an endpoint that the state is too old for.
	tooOld func(endpoint string)
}

// authorize wraps the evaluator of the mode that is configured.
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

// admit puts a write to NodeRestriction. A refusal that something could turn that is too
// old, or may not be read, is no answer.
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
	return fmt.Errorf("not decided: the server may not read %s; bind the cluster role of node-authorizer to its user", strings.Join(resources, ", "))
}
