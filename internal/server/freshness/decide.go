package freshness

import (
	"context"
	"slices"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Authorize wraps an evaluator of access reviews. A request whose opinion is stale waits,
// at most for the given time; 0 means that no request waits. Related is a cheap check, on a
// copy of the request, whether the graph now shows the missing relation. Only if it does,
// the evaluator is asked again.
func (w *Waiter) Authorize(limit time.Duration, next decision.Authorize, related func(*access.Request) bool) decision.Authorize {
	return func(ctx context.Context, req *access.Request) (decision.Opinion, error) {
		complete, asked := w.complete(), w.authorize.changes.Load()
		opinion, err := next(ctx, req)
		if err != nil || !opinion.Stale {
			return opinion, err
		}
		if !complete {
			return decision.Opinion{
				Decision: verdict.NoOpinion, Code: decision.NotSynced, Node: opinion.Node, Authorizer: opinion.Authorizer,
				FailClosed: opinion.Decision == verdict.Deny, // later authorizers must not decide instead
			}, nodeauthz.ErrNotSynced
		}
		if limit <= 0 {
			return opinion, nil
		}
		w.wait(ctx, kindAuthorize, askerOf(opinion.Node, req.User), limit, accessQuestion(req, related, asked), func() bool {
			opinion, err = next(ctx, req)
			return err == nil && opinion.Stale
		})
		return opinion, err
	}
}

// relationKey identifies a missing relation, for requests of one user of a node: the node itself, or a
// service account whose token is bound to the node.
type relationKey struct{ user, verb, group, resource, subresource, namespace, name string }

func accessQuestion(req *access.Request, related func(*access.Request) bool, asked uint64) *question {
	kept := *req
	kept.Groups, kept.FieldSelector = slices.Clone(req.Groups), slices.Clone(req.FieldSelector)
	return &question{
		key:   relationKey{req.User, req.Verb, req.Group, req.Resource, req.Subresource, req.Namespace, req.Name},
		probe: func() bool { return related(&kept) },
		asked: asked,
	}
}

// Admit wraps an evaluator of admission requests. A request whose answer is stale waits,
// at most for the given time; 0 means that no request waits. The evaluator is asked again
// after each change that concerns the node.
func (w *Waiter) Admit(limit time.Duration, next decision.Admit) decision.Admit {
	return func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
		complete, asked := w.complete(), w.admit.changes.Load()
		answer := next(ctx, req)
		if !answer.Stale {
			return answer
		}
		if !complete {
			return notSynced(answer)
		}
		if limit <= 0 {
			return answer
		}
		w.wait(ctx, kindAdmit, askerOf(answer.Node, req.User), limit, &question{asked: asked}, func() bool {
			answer = next(ctx, req)
			return answer.Stale
		})
		return answer
	}
}

// notSynced turns a refusal into an error, so that clients try again.
func notSynced(refused noderestriction.Answer) noderestriction.Answer {
	return noderestriction.Answer{
		Decision: verdict.Deny, Code: decision.NotSynced, Node: refused.Node, Rule: refused.Rule,
		Status: 500,
		Reason: verdict.Reason{
			Code:    decision.NotSynced,
			Message: "the state of the cluster has not been read yet",
			Hint:    "try again in a moment",
		},
	}
}
