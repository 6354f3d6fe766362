package evaluate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// Options describe the cluster. Only Features is required.
type Options struct {
	// Features are the features of the cluster's version.
	Features kubeversion.Features
	// Authorizers is the cluster's configuration; nil means system:masters, Node and
	// RBAC, as with --authorization-mode=Node,RBAC.
	Authorizers *chain.Configuration
	// Access answers the access reviews of NodeRestriction; nil means the authorizers of
	// the Evaluator.
	Access noderestriction.Authorizer
	// Ages says which part of the state is too old; nil means that none ever is.
	Ages Ages
	// Containment has the NodeScopes and Quarantines that come before all authorizers. If it has neither,
	// NodeScopes and Quarantines of the state count, as if the API server asked a server that enforces them; with
	// Authorizers, in admission only. Quarantines then end by Now, and their number has no limit.
	Containment Containment
}

// Evaluator answers from one state by the rules of one version. It is safe for
// concurrent use.
type Evaluator struct {
	// State is the cluster state that the answers come from.
	State *source.State
	// Features are the features of the Kubernetes version.
	Features kubeversion.Features
	// Node is the Node authorizer alone.
	Node *nodeauthz.Authorizer
	// Chain holds all authorizers, in order.
	Chain chain.Chain
	// Restriction is NodeRestriction.
	Restriction *noderestriction.Restriction
	// Scopes is the authorizer of NodeScopes; nil if answers do not depend on them.
	Scopes *nodescope.Authorizer

	containment Containment
	// stored is nil unless the state has the containment.
	stored *stored
	// first is the number of authorizers in Chain that are of Quarantines and NodeScopes. They come after
	// the authorizer of system:masters if mastersFirst is set.
	first        int
	mastersFirst bool

	configured bool
	// mayAskRBAC is true if RBAC is among the authorizers, or would be if the state had
	// roles and bindings.
	mayAskRBAC bool
	access     noderestriction.Authorizer
	ages       Ages
}

// New returns an Evaluator. It returns an error if a configured authorizer cannot be
// built. When ctx ends, connections to webhooks are closed.
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
	e.containment = opts.Containment
	if e.containment.Now == nil {
		e.containment.Now = time.Now
	}
	if e.containment.Scopes == nil && e.containment.Quarantines == nil {
		e.containment = e.useStored(e.containment)
	}
	links := e.links(&e.containment)
	e.first = len(links)
	e.Chain = e.join(links, e.readingParts(e.Chain))
	e.mayAskRBAC = !e.configured || slices.Contains(e.Chain.Names(), chain.NameRBAC)
	return e, nil
}

// authorizers builds the chain. In a state without roles and bindings, RBAC cannot answer:
// the default chain omits it, and a configured RBAC authorizer returns an error.
func (e *Evaluator) authorizers(ctx context.Context, configured *chain.Configuration) (chain.Chain, error) {
	if configured == nil {
		defaults := chain.Chain{chain.Masters(), chain.Node(e.Node)}
		if e.State.RBACLoaded() {
			defaults = append(defaults, chain.RBAC(e.State.RBAC))
		}
		return defaults, nil
	}
	links, err := configured.Build(ctx, chain.Parts{Node: e.Node, RBAC: e.State.RBAC})
	if err != nil {
		return nil, err
	}
	for i, a := range links {
		if a.Name() == chain.NameRBAC && e.lacksRBAC() {
			links[i] = chain.Unavailable(chain.NameRBAC, fmt.Errorf("no roles and bindings in %s", e.State.Origin))
		}
	}
	return links, nil
}

// lacksRBAC reports whether the state has no roles and bindings and will never get any.
func (e *Evaluator) lacksRBAC() bool {
	_, static := e.ages.(noAges)
	return static && !e.State.RBACLoaded()
}
