package query

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// addAudiences adds the audiences for which the node may request tokens of a service account: the
// audiences that the account's pods on the node use. An API server binds a token only to a pod of
// the same account.
func addAudiences(s *command.Session, o *reachedObject, restriction *noderestriction.Restriction) {
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
