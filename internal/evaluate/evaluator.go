package evaluate

import (
	"context"
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// Options say how a cluster behaves. Only Features has to be set.
type Options struct {
	// Features are those of the cluster's version.
	Features kubeversion.Features
	// Authorizers are those of the cluster; nil for system:masters, Node and RBAC, as
	// with --authorization-mode=Node,RBAC.
	Authorizers *chain.Configuration
	// Access answers what NodeRestriction asks about other rights of a node; nil: the
	// authorizers of the Evaluator.
	Access noderestriction.Authorizer
	// Ages say which part of the state is too old; nil: none ever is.
	Ages Ages
}

// Evaluator answers from one state by the rules of one version. It is safe for
// concurrent use.
type Evaluator struct {
	// State is what it answers from.
	State *source.State
	// Features are those of the version.
	Features kubeversion.Features
	// Node is the Node authorizer alone.
	Node *nodeauthz.Authorizer
	// Chain is all authorizers, in order.
	Chain chain.Chain
	// Restriction is NodeRestriction.
	Restriction *noderestriction.Restriction

	configured bool
	// mayAskRBAC tells that RBAC is among the authorizers, or would be if the state had
	// roles and bindings.
	mayAskRBAC bool
	access     noderestriction.Authorizer
	ages       Ages
}

// New makes an Evaluator. An error says what of the configured authorizers cannot be
// made. The context ends connections to webhooks.
func New(ctx context.Context, state *source.State, opts Options) (*Evaluator, error) {
	if opts.Ages == nil {
		opts.Ages = noAges{}
	}
	e := &Evaluator{
		State: state, Features: opts.Features, Node: nodeauthz.New(state.Graph, opts.Features),
		configured: opts.Authorizers != nil, ages: opts.Ages,
	}
	if opts.Access == nil {
		opts.Access = ownAccess{e}
	}
	e.access = opts.Access
	e.Restriction = noderestriction.New(&restrictionState{state, opts.Ages}, opts.Access, opts.Features)
	var err error
	if e.Chain, err = e.authorizers(ctx, opts.Authorizers); err != nil {
		return nil, err
	}
	e.mayAskRBAC = !e.configured || slices.Contains(e.Chain.Names(), chain.NameRBAC)
	return e, nil
}

// authorizers makes the chain. RBAC is left out of the usual one in a state without
// roles and bindings, whose answers would say nothing; where it is configured, it fails
// in such a state.
func (e *Evaluator) authorizers(ctx context.Context, configured *chain.Configuration) (chain.Chain, error) {
	if configured == nil {
		usual := chain.Chain{chain.Masters(), chain.Node(e.Node)}
		if e.State.RBACLoaded() {
			usual = append(usual, chain.RBAC(e.State.RBAC))
		}
		return usual, nil
	}
	links, err := configured.Build(ctx, chain.Parts{Node: e.Node, RBAC: e.State.RBAC})
	if err != nil {
		return nil, err
	}
	for i, a := range links {
		if a.Name() == chain.NameRBAC && e.lacksRBAC() {
			links[i] = chain.Unavailable(chain.NameRBAC, fmt.Errorf("%s has no roles and bindings", e.State.Origin))
		}
	}
	return links, nil
}

// lacksRBAC reports whether nothing is known of roles and bindings, and never will be.
func (e *Evaluator) lacksRBAC() bool {
	_, followed := e.ages.(noAges)
	return followed && !e.State.RBACLoaded()
}
