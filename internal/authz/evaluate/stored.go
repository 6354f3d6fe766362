package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// maxStored is how many NodeScopes and how many Quarantines of a state count, as in a server: the oldest.
const maxStored = 10_000

// stored has the NodeScopes and Quarantines that are objects of the state. Answers that rest on them
// assume that the API server asks node-authorizer about them.
type stored struct {
	// warnings are about objects that are not valid or do not count.
	warnings []string
	// unasked is true if the authorizers are configured. They do not include these then: one of the
	// webhooks may be the server that enforces them, and if none is, nobody does.
	unasked bool
}

// useStored makes the Containment of the state's own NodeScopes and Quarantines. It is empty if there are
// none, and all could be read.
func (e *Evaluator) useStored(c Containment) Containment {
	missing := unread(e.State, source.NodeScopes|source.Quarantines)
	scopes, quarantines := e.State.NodeScopes(), e.State.Quarantines()
	if len(missing)+len(scopes)+len(quarantines) == 0 {
		return c
	}
	s := &stored{unasked: e.configured}
	e.stored = s
	if unread := e.unreadOf(source.NodeScopes); unread != nil || len(scopes) > 0 {
		c.Scopes, c.ScopesKnown = new(atomic.Pointer[nodescope.Policy]), func() error { return unread }
		c.Scopes.Store(s.policy(scopes))
	}
	if unread := e.unreadOf(source.Quarantines); unread != nil || len(quarantines) > 0 {
		now := c.Now()
		set, _ := quarantine.NewSet(s.valid(quarantines), quarantine.Limit{Nodes: math.MaxInt}, now) // the limit is a server's
		c.Quarantines = func() (*quarantine.Set, error) { return set, unread }
	}
	return c
}

// unreadOf returns an error if a kind could not be read.
func (e *Evaluator) unreadOf(kind source.Kinds) error {
	if missing := unread(e.State, kind); len(missing) > 0 {
		return &UnreadError{missing}
	}
	return nil
}

// policy compiles NodeScopes. One that is not valid counts as in a server that never read a valid version
// of it.
func (s *stored) policy(objects []*v1alpha1.NodeScope) *nodescope.Policy {
	objects = oldest(s, v1alpha1.NodeScopeKind, objects, func(o *v1alpha1.NodeScope) int64 { return o.CreationTimestamp.UnixNano() })
	var scopes []*nodescope.Scope
	for _, object := range objects {
		scope, errs := nodescope.Compile(object)
		if len(errs) > 0 {
			scope = nodescope.Broken(object)
			consequence := "its mode is not Enforce, so that nothing is refused"
			if scope != nil {
				consequence = "its accounts are refused, as by a server that never read a valid version"
			}
			s.warn("NodeScope %s is not valid: %v; %s", object.Name, errs.ToAggregate(), consequence)
		}
		if scope != nil {
			scopes = append(scopes, scope)
		}
	}
	policy, excess := nodescope.NewPolicy(scopes)
	for _, scope := range excess {
		s.warn("NodeScope %s does not count for all of its accounts: at most %d may be about one, and the oldest ones count",
			scope.Name(), nodescope.MaxScopes)
	}
	return policy
}

// valid returns the Quarantines that are valid. Servers do not use others.
func (s *stored) valid(objects []*v1alpha1.Quarantine) []*v1alpha1.Quarantine {
	objects = oldest(s, v1alpha1.QuarantineKind, objects, func(o *v1alpha1.Quarantine) int64 { return o.CreationTimestamp.UnixNano() })
	return slices.DeleteFunc(objects, func(object *v1alpha1.Quarantine) bool {
		errs := quarantine.Validate(object)
		if len(errs) > 0 {
			s.warn("Quarantine %s is not valid: %v; nothing is refused because of it", object.Name, errs.ToAggregate())
		}
		return len(errs) > 0
	})
}

// oldest returns the objects that count, of objects that are sorted by name.
func oldest[O any](s *stored, kind string, objects []O, created func(O) int64) []O {
	if len(objects) <= maxStored {
		return objects
	}
	s.warn("of %d objects of kind %s, the oldest %d count", len(objects), kind, maxStored)
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b O) int { return cmp.Compare(created(a), created(b)) })
	return objects[:maxStored]
}

// maxWarnings is how many warnings are kept.
const maxWarnings = 10

func (s *stored) warn(format string, args ...any) {
	switch {
	case len(s.warnings) < maxWarnings:
		s.warnings = append(s.warnings, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
	case len(s.warnings) == maxWarnings:
		s.warnings = append(s.warnings, "and more NodeScopes and Quarantines are not valid or do not count")
	}
}

// Warnings says which NodeScopes and Quarantines of the state are not valid or do not count.
func (e *Evaluator) Warnings() []string {
	if e.stored == nil {
		return nil
	}
	return e.stored.warnings
}

// UnreadContainment returns what could not be read of NodeScopes and Quarantines that could be about a
// user. An allow is in doubt then.
func (e *Evaluator) UnreadContainment(req *access.Request) []source.Missing {
	var on source.Kinds
	if _, _, isAccount := nodeidentity.ServiceAccount(req.User); isAccount {
		on |= source.NodeScopes
	}
	if mayBeQuarantined(req) {
		on |= source.Quarantines
	}
	return unread(e.State, on)
}

// Unasked returns which of the state's NodeScopes and Quarantines would refuse a request, if the
// configured authorizers do not include them; empty if none would.
func (e *Evaluator) Unasked(req *access.Request) string {
	c := &e.containment
	if e.stored == nil || !e.stored.unasked {
		return ""
	}
	if c.Quarantines != nil {
		if set, err := c.Quarantines(); err == nil {
			if a := set.Decide(req, c.Now()); a.Decision == verdict.Deny {
				return v1alpha1.QuarantineKind + " " + a.Quarantine
			}
		}
	}
	if e.Scopes != nil {
		if a := e.Scopes.Decide(req); a.Decision == verdict.Deny {
			return v1alpha1.NodeScopeKind + " " + a.Scope
		}
	}
	return ""
}

// RefusesNames returns the NodeScope that lets a create pass because an authorizer does not know the name, and the
// names that it does not refuse in admission. Both are empty if there is none.
func (e *Evaluator) RefusesNames(req *access.Request) (scope, except string) {
	if e.Scopes == nil || !e.ofAuthorization() || req.Verb != "create" || !req.ResourceRequest || req.Name != "" || req.Subresource != "" {
		return "", ""
	}
	other := *req
	other.Name = ":" // no object has this name, so that the answer depends on no state
	answer := e.Scopes.Decide(&other)
	if answer.Decision != verdict.Deny {
		return "", ""
	}
	switch answer.Code {
	case nodescope.ScopeNameNotNode:
		return answer.Scope, answer.Node
	case nodescope.ScopePodNotOnNode:
		return answer.Scope, "those of pods on " + answer.Node
	}
	return "", ""
}

// QuarantineOf returns the name of the state's Quarantine of a node; empty if there is none, and if the
// configured authorizers do not include it.
func (e *Evaluator) QuarantineOf(node string) string {
	if e.containment.Quarantines == nil || !e.ofAuthorization() {
		return ""
	}
	set, err := e.containment.Quarantines()
	if err != nil {
		return ""
	}
	if q, found := set.Node(node, e.containment.Now()); found {
		return q.Name
	}
	return ""
}

// Passing returns what the NodeScopes of the state let a user do with a token of a node, and whether any
// is about the user. Node is empty for a token without one.
func (e *Evaluator) Passing(user, node string) (passing []nodescope.Passing, scoped bool) {
	if e.Scopes == nil || !e.ofAuthorization() {
		return nil, false
	}
	policy := e.Scopes.Policy()
	return policy.Passing(user, node), len(policy.Of(user)) > 0
}

// ofAuthorization reports whether authorization asks Quarantines and NodeScopes. Admission always does.
func (e *Evaluator) ofAuthorization() bool { return e.stored == nil || !e.stored.unasked }
