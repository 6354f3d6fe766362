package evaluate

import (
	"context"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// quarantineLink is the authorizer of Quarantines. It has an answer for users that cannot be subject to
// one even if the Quarantines are not known.
type quarantineLink struct{ chain.Authorizer }

// Authorize implements chain.Authorizer.
func (l quarantineLink) Authorize(ctx context.Context, req *access.Request, detail chain.Detail) (chain.Opinion, error) {
	if !mayBeQuarantined(req) {
		return chain.Opinion{Decision: verdict.NoOpinion, OnlyRefuses: true, Reason: verdict.Reason{
			Code: quarantine.NotQuarantined, Message: quarantine.Summary(quarantine.NotQuarantined),
		}}, nil
	}
	return l.Authorizer.Authorize(ctx, req, detail)
}

// scopeLink is the authorizer of the NodeScopes of a state. It fails if the state lacks what the answer
// depends on.
type scopeLink struct {
	chain.Authorizer
	*Evaluator
}

// Authorize implements chain.Authorizer.
func (l scopeLink) Authorize(ctx context.Context, req *access.Request, detail chain.Detail) (chain.Opinion, error) {
	if known, err := l.scopesKnown(req.User); err != nil || !known {
		return chain.Opinion{OnlyRefuses: true, Decision: verdict.NoOpinion}, err
	}
	answer, err := l.decideScopes(req)
	if err == nil {
		err = l.scopeUndecided(req, &answer)
	}
	if err != nil {
		return chain.Opinion{OnlyRefuses: true}, err
	}
	return l.Authorizer.Authorize(ctx, req, detail)
}

// decideScopes asks the NodeScopes. Of a cluster that is read in parts, it first reads what the answer
// depends on. Once that has been read, the answer may depend on more.
func (e *Evaluator) decideScopes(req *access.Request) (nodescope.Answer, error) {
	answer := e.Scopes.Decide(req)
	for read := nodescope.Uses(0); e.State.Partial() && answer.Uses&^read != 0; answer = e.Scopes.Decide(req) {
		next := answer.Uses &^ read
		if next&nodescope.UsesPods != 0 && req.Namespace != "" && req.Name != "" {
			if err := e.State.Read(source.Part{Kinds: source.Pods, Namespace: req.Namespace, Name: req.Name}); err != nil {
				return answer, err
			}
		}
		if next&nodescope.UsesAPIServices != 0 {
			if err := e.State.Read(source.Part{Kinds: source.APIServices}); err != nil {
				return answer, err
			}
		}
		if next&nodescope.UsesNodeAuthorizer != 0 {
			if err := e.readRelated(ofNode(answer.Node, req)); err != nil {
				return answer, err
			}
		}
		read |= next
	}
	return answer, e.State.ReadErr()
}

// ofNode returns the request as the node itself would make it.
func ofNode(node string, req *access.Request) *access.Request {
	as := *req
	as.User, as.Groups = nodeidentity.User(node)
	as.UID, as.Extra = "", nil
	return &as
}

// scopeLacks returns what the files do not hold and could change a refusal by a NodeScope.
func (e *Evaluator) scopeLacks(req *access.Request, answer *nodescope.Answer) []Lack {
	if e.State.Complete() && !e.State.Changed() || e.State.Partial() && !e.State.OfFile() {
		return nil
	}
	switch {
	case awaitsPod(req, answer):
		return gaps(e.State.Gaps(answer.Node, graph.Pod, req.Namespace, req.Name))
	case answer.Code == nodescope.ScopeNotAsNode && answer.NodeCode == nodeauthz.NoPathToObject:
		if kind, ok := nodeauthz.KindOf(req.Group, req.Resource); ok {
			return gaps(e.State.Gaps(answer.Node, kind, req.Namespace, req.Name))
		}
	}
	return nil
}
