package cli

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// addAudiences says for which audiences the node may mint tokens of a service
// account: those that its pods on the node use. An API server binds a token to a
// pod of the same account only.
func (s *session) addAudiences(o *reachedObject, restriction *noderestriction.Restriction) {
	for _, path := range o.Paths {
		pod, ok := s.State.Pod(path[0].To.Namespace, path[0].To.Name)
		if !ok {
			continue
		}
		audiences, restricted := restriction.Audiences(pod)
		if !restricted {
			o.AnyAudience = true
			return
		}
		o.Audiences = append(o.Audiences, audiences...)
	}
	slices.Sort(o.Audiences)
	o.Audiences = slices.Compact(o.Audiences)
}
