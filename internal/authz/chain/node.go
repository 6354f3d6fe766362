package chain

import (
	"context"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Node returns the Node authorizer as part of a chain.
func Node(a *nodeauthz.Authorizer) Authorizer { return node{a} }

type node struct{ authorizer *nodeauthz.Authorizer }

func (node) Name() string { return NameNode }

func (n node) Authorize(_ context.Context, req *access.Request, detail Detail) (Opinion, error) {
	if detail == Full {
		e := n.authorizer.Explain(req)
		return Opinion{Decision: e.Decision, Rule: e.Rule, Reason: e.Reason}, nil
	}
	answer := n.authorizer.Decide(req)
	if detail == DecisionOnly {
		return Opinion{Decision: answer.Decision}, nil
	}
	opinion := Opinion{
		Decision: answer.Decision,
		Reason:   verdict.Reason{Code: answer.Code, Message: nodeauthz.Summary(answer.Code)},
	}
	if answer.Decision != verdict.Allow && answer.Code != nodeauthz.NotANode {
		kept := answer // on the heap only here
		opinion.Node = &kept
	}
	return opinion, nil
}
