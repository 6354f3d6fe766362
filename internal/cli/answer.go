package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/render"
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
		Origin:              s.State.Origin,
		KubernetesVersion:   s.Features.Minor().String(),
		AuthorizationConfig: s.configured,
		Authorizers:         visible(s.Chain.Names()),
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
	result, _ := s.Chain.Explain(ctx, req) // the opinions tell the errors
	result.Opinions = slices.DeleteFunc(result.Opinions, func(o chain.Opinion) bool {
		return o.Authorizer == chain.NameMasters && o.Decision == verdict.NoOpinion
	})
	a := answer{
		Answer: no, Identity: who, Request: q, Decision: result.Decision, DecidedBy: result.DecidedBy,
		Reason: evaluate.Main(result).Reason, State: s.info(),
	}
	var lacks []evaluate.Lack
	if result.Decision != verdict.Allow {
		a.Missing, lacks = s.turns(req, evaluate.Main(result).Code, s.asksRBAC(result))
		a.Missing = append(a.Missing, s.lacking(lacks)...)
	}
	why := result.Doubt()
	switch {
	case why != "" && !s.needsRBAC(result):
		a.undecided(verdict.Reason{Code: codeEvaluationFailed, Message: why})
	case len(lacks) > 0:
		a.undecided(s.lackReason(lacks, who))
		asFarAsShown(result.Opinions, s.State.Origin)
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
		Message: fmt.Sprintf("%s, and %s has no roles and bindings", why, s.State.Origin),
		Hint:    "add the roles and bindings with --from, or ask the cluster",
	}
}

// turns lists what could turn a refusal of the authorizers.
func (s *session) turns(req *access.Request, code verdict.Code, asksRBAC bool) (unread []missing, lacks []evaluate.Lack) {
	return unreadable(s.Unread(req, code, asksRBAC)), s.Lacking(req, code, asksRBAC)
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
	if names := unreadNames(a.Missing); len(names) > 0 {
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
