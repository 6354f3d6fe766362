package observe

import (
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// observed: a NodeScope in the mode Observe would refuse the request in the mode Enforce.
const observed = "request would be refused"

// WriteObserved logs a write that a NodeScope in the mode Observe would refuse.
func (r *Refusals) WriteObserved(req *noderestriction.Request, scope *decision.ScopeRefusal) {
	if r.allowsObserved(req.User) {
		r.logObserved(admissionRequest(req, new(line).add("type", typeAdmit).identity("", req.User)), scope)
	}
}

// allowsObserved reports whether a line about an account may be written now. An account has a share of
// the limit, as a node has.
func (r *Refusals) allowsObserved(account string) bool {
	return r.logger.Enabled() && r.limit.allows(account)
}

func (r *Refusals) logObserved(l *line, scope *decision.ScopeRefusal) {
	r.log(observed, l.add("code", string(scope.Code)).add("nodescope", scope.Scope).add("reason", scope.Message()), nil)
}
