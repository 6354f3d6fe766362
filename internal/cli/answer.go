package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// answer is the outcome of one question.
type answer struct {
	// Answer is "yes", "no", or "unknown" if missing state could change a no to a yes.
	Answer string `json:"answer"`
	// Conditions of a yes are the checks of NodeRestriction that depend on an object that
	// was not given.
	Conditions []noderestriction.Condition `json:"conditions,omitempty"`
	// OnlyName is set if a yes to a question without a name is only valid for objects of
	// this name.
	OnlyName string `json:"onlyName,omitempty"`

	// Identity is the user of the question, and Request what is asked about.
	Identity identity `json:"identity"`
	Request  question `json:"request"`
	// Decision is Allow for a yes, NoOpinion if no authorizer decided, and Deny if one did or
	// NodeRestriction refuses.
	Decision verdict.Decision `json:"decision"`
	// DecidedBy is the authorizer that allowed or denied; empty if none did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Reason is the reason of the authorizer that decided. If none did, it is the reason of
	// the Node authorizer for nodes, and of RBAC for other users.
	Reason remediedReason `json:"reason"`
	// Missing is the missing state that could change the answer.
	Missing []missing `json:"missing,omitempty"`
	// Notes are what the answer assumes of kube-apiserver because of NodeScopes and Quarantines, and what
	// only admission checks of a create.
	Notes []string `json:"notes,omitempty"`
	// State is the cluster state that was asked.
	State stateInfo `json:"state"`
}

// remediedReason is a reason with what to change.
type remediedReason struct {
	verdict.Reason
	// Remedy is set by explain, for a no.
	Remedy *verdict.Remedy `json:"remedy,omitempty"`
}

// ruling is an answer with the answers of the authorizers and of NodeRestriction.
type ruling struct {
	answer
	said chain.Result
	// admission is nil if NodeRestriction is not involved.
	admission *admission
}

// decide evaluates the question by the chain. It also evaluates a node's write by
// NodeRestriction, as far as possible with the given objects.
func (s *session) decide(ctx context.Context, who identity, q question, given writtenObjects) (ruling, error) {
	a, said := s.authorize(ctx, who, q)
	by, err := s.evaluateWrite(ctx, who, q, given, a.Answer)
	if err != nil {
		return ruling{}, err
	}
	if err := s.State.ReadErr(); err != nil {
		return ruling{}, err
	}
	s.admitted(&a, by)
	return ruling{answer: a, said: said, admission: by}, nil
}

// authorize evaluates the question by the chain.
func (s *session) authorize(ctx context.Context, who identity, q question) (answer, chain.Result) {
	req := q.request(who)
	result, _ := s.Chain.Explain(ctx, req) // the opinions hold the errors
	result.Opinions = slices.DeleteFunc(result.Opinions, func(o chain.Opinion) bool {
		return o.Authorizer == chain.NameMasters && o.Decision == verdict.NoOpinion
	})
	a := answer{
		Answer: no, Identity: who, Request: q, Decision: result.Decision, DecidedBy: result.DecidedBy,
		Reason: remediedReason{Reason: evaluate.Main(result).Reason}, State: s.info(),
	}
	a.Notes = s.containmentNotes(req, result)
	if s.contained(result) {
		a.Reason.Hint = hintFor(who, a.Reason.Reason)
		return a, result
	}
	var lacks []evaluate.Lack
	inDoubt := allowedInDoubt(result)
	switch {
	case inDoubt:
		a.Missing = append(unreadable(s.UnreadContainment(req)), s.asMissing(s.LackingForScopes(req))...)
	case result.Decision != verdict.Allow:
		a.Missing, lacks = s.missingFor(req, evaluate.Main(result).Code, s.asksRBAC(result))
		a.Missing = append(a.Missing, s.asMissing(lacks)...)
	}
	why := result.Doubt()
	switch {
	case why != "" && (inDoubt || !s.needsRBAC(result)):
		a.undecided(verdict.Reason{Code: codeEvaluationFailed, Message: why})
	case len(lacks) > 0:
		a.undecided(s.lackReason(lacks, who))
		noteOrigin(result.Opinions, s.State.Origin)
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

// noteOrigin adds to the opinion that no path exists that it is based on files, which may
// be incomplete.
func noteOrigin(opinions []chain.Opinion, origin string) {
	for i := range opinions {
		if o := &opinions[i]; o.Code == nodeauthz.NoPathToObject {
			o.Message += ", as far as known from " + origin
		}
	}
}

// undecided resets the decision of the chain, because it is based on an error.
func (a *answer) undecided(why verdict.Reason) {
	a.Answer, a.Decision, a.DecidedBy, a.Reason = unknown, verdict.NoOpinion, "", remediedReason{Reason: why}
}

// missingFor returns the missing state that could change a refusal of the authorizers.
func (s *session) missingFor(req *access.Request, code verdict.Code, asksRBAC bool) (unread []missing, lacks []evaluate.Lack) {
	return unreadable(s.Unread(req, code, asksRBAC)), s.Lacking(req, code, asksRBAC)
}

// status returns the exit status for an answer.
func (a answer) status() int {
	switch a.Answer {
	case yes:
		return statusAllowed
	case no:
		return statusDenied
	}
	return statusUndecided
}

// styled returns the answer in its color.
func (a answer) styled() string {
	switch a.Answer {
	case yes:
		return render.Good.In(a.Answer)
	case no:
		return render.Bad.In(a.Answer)
	}
	return render.Unsure.In(a.Answer)
}

// line returns the answer in one line, with the reason.
func (a answer) line() string {
	line := a.styled() + a.onlyNameText()
	switch {
	case len(a.Conditions) > 0:
		if left := conditionsExceptName(a.Conditions); len(left) > 0 {
			line += ", if " + a.Request.passesRestriction() + ": " + strings.Join(requirements(left), "; ")
		}
		return line
	case a.Reason.Message != "":
		line += ": " + a.Reason.Message
	}
	if names := unreadNames(a.Missing); len(names) > 0 && !strings.Contains(line, "could not read "+strings.Join(names, ", ")) {
		line += "; but could not read " + strings.Join(names, ", ")
	}
	for _, note := range a.Notes {
		line += "; " + note
	}
	return line
}

func (a answer) onlyNameText() string {
	if a.OnlyName == "" {
		return ""
	}
	return ", of the name " + a.OnlyName + " only"
}

// conditionsExceptName returns the conditions except those that depend only on the name.
func conditionsExceptName(all []noderestriction.Condition) []noderestriction.Condition {
	return slices.DeleteFunc(slices.Clone(all), func(c noderestriction.Condition) bool { return c.OwnName })
}

// requirements returns the conditions as text.
func requirements(all []noderestriction.Condition) []string {
	lines := make([]string, len(all))
	for i, c := range all {
		lines[i] = c.Requires
	}
	return lines
}
