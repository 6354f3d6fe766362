package command

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
)

// StateInfo describes the state that an answer comes from.
type StateInfo struct {
	// Origin says in words where the state comes from: a cluster, or which files.
	Origin string `json:"origin"`
	// KubernetesVersion is the minor version whose rules apply, such as 1.37.
	KubernetesVersion string `json:"kubernetesVersion"`
	// AuthorizationConfig is the file of the AuthorizationConfiguration; empty for the
	// default authorizers.
	AuthorizationConfig string `json:"authorizationConfig,omitempty"`
	// Authorizers are the authorizers of the chain, in order.
	Authorizers []string `json:"authorizers"`
}

func (s *Session) Info() StateInfo {
	// The authorizer of system:masters is left out: it cannot be configured, and rarely matters.
	isMasters := func(name string) bool { return name == chain.NameMasters }
	return StateInfo{
		Origin:              s.State.Origin,
		KubernetesVersion:   s.Features.Minor().String(),
		AuthorizationConfig: s.Configured,
		Authorizers:         slices.DeleteFunc(s.Chain.Names(), isMasters),
	}
}

// ForPage converts it for a page.
func (s StateInfo) ForPage() report.State {
	return report.State{Origin: s.Origin, KubernetesVersion: s.KubernetesVersion}
}
