package generate

import (
	"errors"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// FailurePolicy is the decision of an API server about requests for which the server does not answer.
type FailurePolicy string

// The failure policies, as an AuthorizationConfiguration names them.
const (
	// Deny refuses them.
	Deny FailurePolicy = "Deny"
	// NoOpinion lets the authorizers after the webhook decide.
	NoOpinion FailurePolicy = "NoOpinion"
)

// Options are what a configuration is made for.
type Options struct {
	// Scopes are the NodeScopes at hand, sorted.
	Scopes []*v1alpha1.NodeScope
	// Quarantines sends the requests of all nodes, and of all tokens that are bound to a node.
	Quarantines bool
	// ServerUsers are the users of the server itself. They are never sent: the server could not
	// start while it has to answer about its own requests.
	ServerUsers []string
	// FailurePolicy is Deny or NoOpinion. [Options.DefaultFailurePolicy] is the one that fits.
	FailurePolicy FailurePolicy
	// Minor is the Kubernetes version of the API server; 0 if it is not known, so that only what
	// all versions since 1.32 know is used.
	Minor kubeversion.Minor
	// Kubeconfig is the path, on the API server's machine, of the kubeconfig with the address of
	// the server's /authorize.
	Kubeconfig string
	// URL is the address of the server's /admit.
	URL string
}

// ErrNothingToSend means that there are neither scopes nor quarantines.
var ErrNothingToSend = errors.New("no NodeScopes, and no quarantines: the API server would have nothing to ask; " +
	"name manifests of scopes with -f, or add --quarantines")

func (o *Options) check() error {
	if len(o.Scopes) == 0 && !o.Quarantines {
		return ErrNothingToSend
	}
	return nil
}

// Selection says how exactly the accounts of the scopes are selected.
func (o *Options) Selection() Selection { return newSelector(o.Scopes).selection() }

// DefaultFailurePolicy is the failure policy with which an outage changes no more than the scopes do:
// NoOpinion while nothing refuses, and Deny as soon as one scope enforces, or with quarantines.
func (o *Options) DefaultFailurePolicy() FailurePolicy {
	if o.OnlyObserves() {
		return NoOpinion
	}
	return Deny
}

// OnlyObserves reports whether no scope refuses anything.
func (o *Options) OnlyObserves() bool {
	for _, s := range o.Scopes {
		if s.Spec.Mode != v1alpha1.Observe {
			return false
		}
	}
	return !o.Quarantines
}
