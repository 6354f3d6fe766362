package evaluate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Containment has the NodeScopes and the Quarantines of a cluster. Each is nil if the answers do not
// depend on it.
type Containment struct {
	// Scopes is the current policy. ScopesKnown returns an error if it has not been read yet or is too
	// old; nil means that it never is.
	Scopes      *atomic.Pointer[nodescope.Policy]
	ScopesKnown func() error
	// Quarantines returns the current set, or an error if it has not been read yet or is too old.
	Quarantines func() (*quarantine.Set, error)
	// Self reports whether a user is the one with which the state is read. Its requests are decided
	// without NodeScopes and Quarantines while these are not known, so that an API server and the
	// server never wait for each other. Nil means that nobody is.
	Self func(user string) bool
	// Now is the time by which Quarantines end; nil means time.Now.
	Now func() time.Time
}

// links returns the authorizers of Quarantines and NodeScopes, which come before all others.
func (e *Evaluator) links(c *Containment) chain.Chain {
	var links chain.Chain
	if c.Self == nil {
		c.Self = func(string) bool { return false }
	}
	if c.Quarantines != nil {
		links = append(links, quarantineLink{chain.Quarantine(c.Quarantines, c.Now)})
	}
	if c.Scopes != nil {
		e.Scopes = nodescope.New(c.Scopes, e.State.Aggregation, e.State.Graph, e.Node, e.Restriction)
		links = append(links, scopeLink{chain.NodeScope(e.Scopes), e})
	}
	if !e.ofAuthorization() {
		return nil
	}
	return links
}

// join puts the authorizers of Quarantines and NodeScopes before the others. To predict an API server,
// the authorizer of system:masters comes first: an API server asks no authorizer about members of that group.
func (e *Evaluator) join(links, rest chain.Chain) chain.Chain {
	e.mastersFirst = e.stored != nil && len(links) > 0 && len(rest) > 0 && rest[0].Name() == chain.NameMasters
	if e.mastersFirst {
		return slices.Concat(rest[:1], links, rest[1:])
	}
	return slices.Concat(links, rest)
}

// withoutContainment returns the authorizers except the ones that [Evaluator.contain] asks.
func (e *Evaluator) withoutContainment() chain.Chain {
	if e.mastersFirst {
		return slices.Concat(e.Chain[:1], e.Chain[1+e.first:])
	}
	return e.Chain[e.first:]
}

// contain asks the Quarantines and the NodeScopes. If they refuse, refused is true and the opinion is
// the answer. If they cannot be evaluated, the error is the answer, and the opinion fails closed.
// Otherwise the opinion has at most what a NodeScope observes.
func (e *Evaluator) contain(req *access.Request) (opinion decision.Opinion, refused bool, err error) {
	c := &e.containment
	if !e.ofAuthorization() || e.stored != nil && slices.Contains(req.Groups, chain.NameMasters) {
		return decision.Opinion{}, false, nil
	}
	if c.Quarantines != nil && mayBeQuarantined(req) {
		set, err := c.Quarantines()
		if err != nil && !c.Self(req.User) {
			return failClosed(codeOf(err)), false, err
		}
		if err != nil {
			set = nil
		}
		if !set.Empty() { // usually it is, and reading the clock takes as long as most decisions
			if a := set.Decide(req, c.Now()); a.Decision == verdict.Deny {
				return quarantinedOpinion(a), true, nil
			}
		}
	}
	if e.Scopes == nil {
		return decision.Opinion{}, false, nil
	}
	return e.scope(req)
}

// mayBeQuarantined reports whether a user can be subject to a Quarantine. Others get their answer even
// before the Quarantines have been read, so that an API server and the server never wait for each
// other.
func mayBeQuarantined(req *access.Request) bool {
	return len(req.Extra) > 0 || strings.HasPrefix(req.User, nodeidentity.UserPrefix)
}

func quarantinedOpinion(a quarantine.Answer) decision.Opinion {
	return decision.Opinion{
		Decision: verdict.Deny, Code: a.Code, Node: a.Node, Authorizer: chain.NameQuarantine,
		Reason: chain.NameQuarantine + ": " + quarantine.Summary(a.Code),
		Detail: func() string { return quarantine.Summary(a.Code) + " by Quarantine " + a.Quarantine },
	}
}

func (e *Evaluator) scope(req *access.Request) (opinion decision.Opinion, refused bool, err error) {
	switch known, err := e.scopesKnown(req.User); {
	case err != nil:
		return failClosed(codeOf(err)), false, err
	case !known:
		return decision.Opinion{}, false, nil
	}
	answer, err := e.decideScopes(req)
	if err != nil {
		return failClosed(codeOf(err)), false, err
	}
	if answer.Code == nodescope.NotInScope {
		return decision.Opinion{}, false, nil
	}
	if err := e.scopeUndecided(req, &answer); err != nil {
		return failClosed(codeOf(err)), false, err
	}
	if !answer.Refused() || e.observedUndecided(req, &answer, scopeReads(req, &answer, answer.Uses)) {
		return decision.Opinion{}, false, nil
	}
	opinion = decision.Opinion{Node: answer.Node, Scope: refusalOf(req, answer)}
	if answer.Decision != verdict.Deny {
		return opinion, false, nil
	}
	opinion.Decision, opinion.Code, opinion.Authorizer = verdict.Deny, answer.Code, chain.NameNodeScope
	opinion.Reason = chain.NameNodeScope + ": " + nodescope.Summary(answer.Code)
	opinion.Detail = opinion.Scope.Message
	opinion.Stale = awaitsPod(req, &answer) || answer.Code == nodescope.ScopeNotAsNode
	return opinion, true, nil
}

// awaitsPod reports whether a request is refused because no pod of its name is on the node. That can change as
// long as the watch has not delivered the pod.
func awaitsPod(req *access.Request, answer *nodescope.Answer) bool {
	return answer.Code == nodescope.ScopePodNotOnNode && req.Namespace != "" && req.Name != ""
}

// scopesKnown reports whether the NodeScopes may be asked about a user. The error means that they would
// have to be, and are not known.
func (e *Evaluator) scopesKnown(user string) (bool, error) {
	c := &e.containment
	if _, _, isAccount := nodeidentity.ServiceAccount(user); !isAccount || c.ScopesKnown == nil {
		return true, nil
	}
	err := c.ScopesKnown()
	if err != nil && c.Self(user) {
		return false, nil
	}
	return err == nil, err
}

func refusalOf(req *access.Request, answer nodescope.Answer) *decision.ScopeRefusal {
	return &decision.ScopeRefusal{
		Account: req.User, Scope: answer.Scope, Code: answer.Code, Enforced: answer.Decision == verdict.Deny,
		Message: func() string { return nodescope.Reason(req, &answer).Message },
	}
}

// scopeUndecided returns an error if the answer depends on state that is too old, or if it is a refusal
// that missing state could change. What a NodeScope in the mode Observe depends on changes no answer.
func (e *Evaluator) scopeUndecided(req *access.Request, answer *nodescope.Answer) error {
	return e.scopesUndecided(req, answer, scopeReads(req, answer, answer.EnforcedUses), answer.Decision == verdict.Deny)
}

// LackingForScopes returns what the files do not hold and could make enforced NodeScopes let a request pass.
func (e *Evaluator) LackingForScopes(req *access.Request) []Lack {
	answer, err := e.decideScopes(req)
	if err != nil || answer.Code == nodescope.NotInScope {
		return nil
	}
	if lack, ok := errors.AsType[*LackError](e.scopeUndecided(req, &answer)); ok {
		return lack.Lacks
	}
	return nil
}

// observedUndecided reports whether it is not decided that a NodeScope in the mode Observe would refuse.
func (e *Evaluator) observedUndecided(req *access.Request, answer *nodescope.Answer, on source.Kinds) bool {
	return answer.Decision != verdict.Deny && e.scopesUndecided(req, answer, on, true) != nil
}

// scopesUndecided is scopeUndecided for the kinds on which a part of the answer depends.
func (e *Evaluator) scopesUndecided(req *access.Request, answer *nodescope.Answer, on source.Kinds, refused bool) error {
	if on == 0 {
		return nil
	}
	if !e.ages.Fresh() {
		if err := e.ages.TooOld(on); err != nil {
			return err
		}
	}
	if !refused {
		return e.serverUnknown(req, on)
	}
	on &^= source.APIServices // another server only makes NodeScopes refuse more
	_ = e.State.Probe(on)     // the state keeps the error
	if missing := unread(e.State, on); len(missing) > 0 {
		return &UnreadError{missing}
	}
	if lacks := e.scopeLacks(req, answer); len(lacks) > 0 {
		return &LackError{lacks}
	}
	return nil
}

// serverUnknown returns an error if it decides about a request which server serves its version, and that is not known.
func (e *Evaluator) serverUnknown(req *access.Request, on source.Kinds) error {
	if on&source.APIServices == 0 {
		return nil
	}
	if _, known := e.State.Aggregation().Of(req.Group, req.Version); known {
		return nil
	}
	if missing := unread(e.State, source.APIServices); len(missing) > 0 {
		return &UnreadError{missing}
	}
	return &LackError{[]Lack{e.State.APIServiceGap(req.Group, req.Version)}}
}

// scopeReads returns the kinds of a part of the state on which the answer of NodeScopes depends.
func scopeReads(req *access.Request, answer *nodescope.Answer, uses nodescope.Uses) source.Kinds {
	var on source.Kinds
	if uses&nodescope.UsesPods != 0 {
		on |= source.Pods
	}
	if uses&nodescope.UsesAPIServices != 0 {
		on |= source.APIServices
	}
	if uses&nodescope.UsesNodeAuthorizer != 0 {
		on |= authorizationReads(answer.NodeCode, req)
	}
	if uses&nodescope.UsesNodeRestriction != 0 {
		on |= source.Pods | source.Nodes
	}
	return on
}

func failClosed(code verdict.Code) decision.Opinion {
	return decision.Opinion{Decision: verdict.NoOpinion, Code: code, FailClosed: true}
}

// codeOf returns the code of an error of state that is missing or too old.
func codeOf(err error) verdict.Code {
	if IsTooOld(err) {
		return decision.StateTooOld
	}
	return decision.NotSynced
}

// IsTooOld reports whether an error says that state, NodeScopes or Quarantines are too old.
func IsTooOld(err error) bool {
	_, state := errors.AsType[*source.AgeError](err)
	_, copied := errors.AsType[*staleness.Error](err)
	return state || copied
}

// quarantineLink is the authorizer of Quarantines. It has an answer for users that cannot be subject to
// one even if the Quarantines are not known.
type quarantineLink struct{ chain.Authorizer }

// Authorize implements chain.Authorizer.
func (l quarantineLink) Authorize(ctx context.Context, req *access.Request, detail chain.Detail) (chain.Opinion, error) {
	if !mayBeQuarantined(req) {
		return chain.Opinion{Decision: verdict.NoOpinion, OnlyRefuses: true, Reason: verdict.Reason{
			Code: quarantine.NotQuarantined, Message: quarantine.Summary(quarantine.NotQuarantined),
		}}, nil
	}
	return l.Authorizer.Authorize(ctx, req, detail)
}

// scopeLink is the authorizer of the NodeScopes of a state. It fails if the state lacks what the answer
// depends on.
type scopeLink struct {
	chain.Authorizer
	*Evaluator
}

// Authorize implements chain.Authorizer.
func (l scopeLink) Authorize(ctx context.Context, req *access.Request, detail chain.Detail) (chain.Opinion, error) {
	if known, err := l.scopesKnown(req.User); err != nil || !known {
		return chain.Opinion{OnlyRefuses: true, Decision: verdict.NoOpinion}, err
	}
	answer, err := l.decideScopes(req)
	if err == nil {
		err = l.scopeUndecided(req, &answer)
	}
	if err != nil {
		return chain.Opinion{OnlyRefuses: true}, err
	}
	return l.Authorizer.Authorize(ctx, req, detail)
}

// decideScopes asks the NodeScopes. Of a cluster that is read in parts, it first reads what the answer
// depends on. Once that has been read, the answer may depend on more.
func (e *Evaluator) decideScopes(req *access.Request) (nodescope.Answer, error) {
	answer := e.Scopes.Decide(req)
	for read := nodescope.Uses(0); e.State.Partial() && answer.Uses&^read != 0; answer = e.Scopes.Decide(req) {
		next := answer.Uses &^ read
		if next&nodescope.UsesPods != 0 && req.Namespace != "" && req.Name != "" {
			if err := e.State.Read(source.Part{Kinds: source.Pods, Namespace: req.Namespace, Name: req.Name}); err != nil {
				return answer, err
			}
		}
		if next&nodescope.UsesAPIServices != 0 {
			if err := e.State.Read(source.Part{Kinds: source.APIServices}); err != nil {
				return answer, err
			}
		}
		if next&nodescope.UsesNodeAuthorizer != 0 {
			asNode := *req
			asNode.User, asNode.Groups = nodeidentity.User(answer.Node)
			asNode.UID, asNode.Extra = "", nil
			if err := e.readRelated(&asNode); err != nil {
				return answer, err
			}
		}
		read |= next
	}
	return answer, e.State.ReadErr()
}

// scopeLacks returns what the files do not hold and could change a refusal by a NodeScope.
func (e *Evaluator) scopeLacks(req *access.Request, answer *nodescope.Answer) []Lack {
	if e.State.Complete() && !e.State.Changed() || e.State.Partial() && !e.State.OfFile() {
		return nil
	}
	switch {
	case awaitsPod(req, answer):
		return e.State.Gaps(answer.Node, graph.Pod, req.Namespace, req.Name)
	case answer.Code == nodescope.ScopeNotAsNode && answer.NodeCode == nodeauthz.NoPathToObject:
		if kind, ok := nodeauthz.KindOf(req.Group, req.Resource); ok {
			return e.State.Gaps(answer.Node, kind, req.Namespace, req.Name)
		}
	}
	return nil
}
