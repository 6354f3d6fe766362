package chain

import (
	"context"

	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

var _ noderestriction.Authorizer = Chain{}

// Authorize answers the extra checks of NodeRestriction. The reason is that of
// the authorizer that decided, or of all when none did; an error means that the
// question could not be decided.
func (c Chain) Authorize(ctx context.Context, a *noderestriction.Access) (allowed bool, reason string, err error) {
	result, err := c.Brief(ctx, &nodeauthz.Request{
		User: a.User, UID: a.UID, Groups: a.Groups, Extra: a.Extra,
		Verb: a.Verb, Group: a.Group, Version: a.Version, Resource: a.Resource,
		Namespace: a.Namespace, Name: a.Name, ResourceRequest: true,
	})
	return err == nil && result.Decision == verdict.Allow, result.Reason(), err
}
