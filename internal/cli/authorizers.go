package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// newChain is the order of an API server that runs with
// --authorization-mode=Node,RBAC. RBAC is left out of a state without roles and
// bindings, whose answers would say nothing.
func newChain(state *source.State, node *nodeauthz.Authorizer) chain.Chain {
	links := chain.Chain{chain.Masters(), chain.Node(node)}
	if state.RBACLoaded() {
		links = append(links, chain.RBAC(state.RBAC))
	}
	return links
}

// configuration reads the file of --authorization-config; nil without the flag.
func (f *stateFlags) configuration() (*chain.Configuration, error) {
	if f.authorization == "" {
		return nil, nil
	}
	c, err := chain.Load(f.authorization)
	var problems chain.Problems
	if errors.As(err, &problems) && len(problems) > 1 {
		for _, p := range problems {
			f.app.failure("%s: %v", f.authorization, p)
		}
		return nil, fmt.Errorf("%s cannot be used: %d problems", f.authorization, len(problems))
	}
	return c, err
}

// configuredChain is the chain of a configuration. RBAC fails in a state without
// roles and bindings: whoever configures it wants its answers.
func configuredChain(ctx context.Context, c *chain.Configuration, state *source.State, node *nodeauthz.Authorizer) (chain.Chain, error) {
	links, err := c.Build(ctx, chain.Parts{Node: node, RBAC: state.RBAC})
	if err != nil {
		return nil, fmt.Errorf("building the configured authorizers: %w", err)
	}
	for i, a := range links {
		if a.Name() == chain.NameRBAC && !state.RBACLoaded() {
			links[i] = chain.Unavailable(chain.NameRBAC, fmt.Errorf("%s has no roles and bindings", state.Origin))
		}
	}
	return links, nil
}

// evaluationError is what an API server says beside an answer that is none the less
// its answer: the error of who denies, or of all if nobody decides.
func evaluationError(result chain.Result) string {
	var failed []string
	for _, o := range result.Opinions {
		if o.Error != "" && result.Decision != verdict.Allow && (result.DecidedBy == "" || o.Authorizer == result.DecidedBy) {
			failed = append(failed, o.Failure())
		}
	}
	return strings.Join(failed, "; ")
}

// needsRBAC reports whether RBAC is asked of a state without roles and bindings.
func (s *session) needsRBAC(result chain.Result) bool {
	return !s.state.RBACLoaded() && result.Decision != verdict.Allow && s.asksRBAC(result)
}

// asksRBAC reports whether RBAC is asked, or would be if there were roles and
// bindings.
func (s *session) asksRBAC(result chain.Result) bool {
	return s.configured == "" || asked(result, chain.NameRBAC)
}

func asked(result chain.Result, authorizer string) bool {
	return slices.ContainsFunc(result.Opinions, func(o chain.Opinion) bool { return o.Authorizer == authorizer })
}

// chained puts reviews to the configured chain. A refusal says what each
// authorizer says, at length what the Node authorizer does; an answer that
// cannot be relied on is none.
func (s *session) chained() review.Evaluate {
	complete := len(s.state.Missing()) == 0 && s.state.Complete()
	return func(ctx context.Context, req *nodeauthz.Request) (review.Opinion, error) {
		result, _ := s.chain.Brief(ctx, req) // the opinions tell the errors
		if why := result.Doubt(); why != "" {
			return review.Opinion{Decision: verdict.NoOpinion}, errors.New(why)
		}
		for i := range result.Opinions {
			if o := &result.Opinions[i]; o.Authorizer == chain.NameNode && o.Decision != verdict.Allow && o.Code != nodeauthz.NotANode {
				o.Message = s.node.Message(req, s.node.Decide(req))
			}
		}
		opinion := review.Opinion{
			Decision: result.Decision, Reason: result.Reason(), Authorizer: result.DecidedBy, EvaluationError: evaluationError(result),
		}
		if complete || result.Decision == verdict.Allow {
			return opinion, nil
		}
		if missing := s.missingFor(req, result); len(missing) > 0 {
			return opinion, fmt.Errorf("could not read %s", strings.Join(resourceNames(missing), ", "))
		}
		return opinion, s.lackError(req, failedForPath(result), s.asksRBAC(result))
	}
}
