package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The answers to a question.
const (
	yes     = "yes"
	no      = "no"
	unknown = "unknown"
)

// answer is the outcome of one question.
type answer struct {
	// Answer is "yes", "no", or "unknown" when what could not be read, or what
	// files lack, might turn a no into a yes.
	Answer string `json:"answer"`
	// Conditions of a yes are what NodeRestriction requires of a write and what
	// depends on an object that was not given.
	Conditions []noderestriction.Condition `json:"conditions,omitempty"`
	// OnlyName is set for a yes to a question without a name that holds for objects of
	// this name only.
	OnlyName string `json:"onlyName,omitempty"`

	Identity identity         `json:"identity"`
	Request  question         `json:"request"`
	Decision verdict.Decision `json:"decision"`
	// DecidedBy is the authorizer that allowed or denied; empty when none did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Reason is the deciding authorizer's; when none decided, that of the Node
	// authorizer for nodes and of RBAC for other users.
	Reason verdict.Reason `json:"reason"`
	// Missing is what could not be read, or files lack, and could change the answer.
	Missing []missing `json:"missing,omitempty"`
	State   stateInfo `json:"state"`
}

// stateInfo says what an answer was taken from.
type stateInfo struct {
	Origin            string `json:"origin"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// AuthorizationConfig is the file that the chain was made from; empty for
	// the usual one.
	AuthorizationConfig string `json:"authorizationConfig,omitempty"`
	// Authorizers are those of the chain, in order.
	Authorizers []string `json:"authorizers"`
}

func (s *session) info() stateInfo {
	return stateInfo{
		Origin:              s.state.Origin,
		KubernetesVersion:   s.features.Minor().String(),
		AuthorizationConfig: s.configured,
		Authorizers:         visible(s.chain.Names()),
	}
}

// visible leaves out the link that is not configurable and seldom matters.
func visible(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == chain.NameMasters })
}

// ruling is an answer with what those who were asked say.
type ruling struct {
	answer
	said chain.Result
	// admission is nil for what NodeRestriction has nothing to do with.
	admission *admission
}

// decide puts the question to the chain, and a node's write also to
// NodeRestriction, as far as the objects that were given allow.
func (s *session) decide(ctx context.Context, who identity, q question, given writtenObjects) (ruling, error) {
	a, said := s.authorize(ctx, who, q)
	by, err := s.admission(ctx, who, q, given, a.Answer)
	if err != nil {
		return ruling{}, err
	}
	s.admitted(&a, by)
	return ruling{answer: a, said: said, admission: by}, nil
}

// authorize puts the question to the chain.
func (s *session) authorize(ctx context.Context, who identity, q question) (answer, chain.Result) {
	req := q.request(who)
	result, _ := s.chain.Explain(ctx, req) // the opinions tell the errors
	result.Opinions = slices.DeleteFunc(result.Opinions, func(o chain.Opinion) bool {
		return o.Authorizer == chain.NameMasters && o.Decision == verdict.NoOpinion
	})
	a := answer{
		Answer: no, Identity: who, Request: q, Decision: result.Decision, DecidedBy: result.DecidedBy,
		Reason: mainReason(result, who), State: s.info(),
	}
	var lacks []missing
	if result.Decision != verdict.Allow {
		lacks = s.lackFor(req, failedForPath(result), s.asksRBAC(result))
		a.Missing = append(s.missingFor(req, result), lacks...)
	}
	why := result.Doubt()
	switch {
	case why != "" && !s.needsRBAC(result):
		a.undecided(verdict.Reason{Code: codeEvaluationFailed, Message: why})
	case len(lacks) > 0:
		a.undecided(s.lackReason(lacks, who))
		asFarAsShown(result.Opinions, s.state.Origin)
	case s.needsRBAC(result) && (!who.isNode || s.configured != ""):
		a.undecided(s.rbacNeeded(who))
	case why != "":
		a.undecided(verdict.Reason{Code: codeEvaluationFailed, Message: why})
	case result.Decision == verdict.Allow:
		a.Answer = yes
	}
	if len(a.Missing) > 0 {
		a.Answer = unknown
	}
	return a, result
}

// asFarAsShown keeps an opinion that nothing relates an object to the node from
// saying more than files show.
func asFarAsShown(opinions []chain.Opinion, origin string) {
	for i := range opinions {
		if o := &opinions[i]; o.Code == nodeauthz.NoPathToObject {
			o.Message += ", as far as " + origin + " shows"
		}
	}
}

// undecided takes back what the chain decided, because it rests on an error.
func (a *answer) undecided(why verdict.Reason) {
	a.Answer, a.Decision, a.DecidedBy, a.Reason = unknown, verdict.NoOpinion, "", why
}

// Codes of questions that could not be decided.
const (
	codeEvaluationFailed verdict.Code = "EvaluationFailed"
	codeRBACNotLoaded    verdict.Code = "RBACNotLoaded"
	codeInputIncomplete  verdict.Code = "InputIncomplete"
)

func (s *session) rbacNeeded(who identity) verdict.Reason {
	why := "RBAC decides about " + who.kind()
	switch {
	case s.configured != "":
		why = s.configured + " asks RBAC"
	case who.isNode:
		why = "RBAC could allow what the Node authorizer does not"
	}
	return verdict.Reason{
		Code:    codeRBACNotLoaded,
		Message: fmt.Sprintf("%s, and %s has no roles and bindings", why, s.state.Origin),
		Hint:    "add the roles and bindings with --from, or ask the cluster",
	}
}

// mainReason picks the opinion that matters most to people.
func mainReason(result chain.Result, who identity) verdict.Reason {
	wanted := result.DecidedBy
	if wanted == "" && who.isNode {
		wanted = chain.NameNode
	}
	for _, o := range result.Opinions {
		if o.Authorizer == wanted {
			return o.Reason
		}
	}
	if len(result.Opinions) == 0 {
		return verdict.Reason{}
	}
	return result.Opinions[len(result.Opinions)-1].Reason
}

// missingFor lists what could not be read and might have allowed a request
// about which nobody had an opinion.
func (s *session) missingFor(req *nodeauthz.Request, result chain.Result) []missing {
	return s.unread(req, failedForPath(result), s.asksRBAC(result))
}

// unread lists what could not be read and might relate the object to the node, if
// that is why the Node authorizer has no opinion, or be a role, if RBAC was to be asked.
func (s *session) unread(req *nodeauthz.Request, noPath, asksRBAC bool) []missing {
	relevant := map[schema.GroupResource]bool{}
	if kind, ok := nodeauthz.KindOf(req.Group, req.Resource); ok && noPath {
		relevant = holders(kind)
	}
	return s.missingWhere(func(m source.Missing) bool { return m.RBAC && asksRBAC || relevant[m.Resource] })
}

func (s *session) missingWhere(relevant func(source.Missing) bool) []missing {
	var found []missing
	for _, m := range s.state.Missing() {
		if relevant(m) {
			found = append(found, missing{Resource: m.Resource.String(), Reason: m.Reason})
		}
	}
	return found
}

func failedForPath(result chain.Result) bool {
	return slices.ContainsFunc(result.Opinions, func(o chain.Opinion) bool { return o.Code == nodeauthz.NoPathToObject })
}

// status is the exit status that an answer stands for.
func (a answer) status() int {
	switch a.Answer {
	case yes:
		return statusAllowed
	case no:
		return statusDenied
	}
	return statusUndecided
}

// styled colours an answer.
func (a answer) styled() string {
	switch a.Answer {
	case yes:
		return render.Good.In(a.Answer)
	case no:
		return render.Bad.In(a.Answer)
	}
	return render.Unsure.In(a.Answer)
}

// line is the answer in one line, with the reason.
func (a answer) line() string {
	line := a.styled() + a.onlyNameText()
	switch {
	case len(a.Conditions) > 0:
		if left := beyondTheName(a.Conditions); len(left) > 0 {
			line += ", if " + a.Request.passes() + ": " + strings.Join(requirements(left), "; ")
		}
		return line
	case a.Reason.Message != "":
		line += ": " + a.Reason.Message
	}
	if names := unreadable(a.Missing); len(names) > 0 {
		line += "; but could not read " + strings.Join(names, ", ")
	}
	return line
}

func (a answer) onlyNameText() string {
	if a.OnlyName == "" {
		return ""
	}
	return ", of the name " + a.OnlyName + " only"
}

// beyondTheName are the conditions but those that the name alone decides.
func beyondTheName(all []noderestriction.Condition) []noderestriction.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c noderestriction.Condition) bool { return c.OwnName })
}

// requirements are the conditions in words.
func requirements(all []noderestriction.Condition) []string {
	lines := make([]string, len(all))
	for i, c := range all {
		lines[i] = c.Requires
	}
	return lines
}
