package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodescope"
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
	Identity command.Identity `json:"identity"`
	Request  command.Question `json:"request"`
	// Decision is Allow for a yes, NoOpinion if no authorizer decided, and Deny if one did or
	// NodeRestriction refuses.
	Decision verdict.Decision `json:"decision"`
	// DecidedBy is the authorizer that allowed or denied; empty if none did.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Reason is the reason of the authorizer that decided. If none did, it is the reason of
	// the Node authorizer for nodes, and of RBAC for other users.
	Reason remediedReason `json:"reason"`
	// Missing is the missing state that could change the answer.
	Missing []command.Missing `json:"missing,omitempty"`
	// Notes are what the answer assumes of kube-apiserver because of NodeScopes and Quarantines, and what
	// only admission checks of a create.
	Notes []string `json:"notes,omitempty"`
	// State is the cluster state that was asked.
	State command.StateInfo `json:"state"`
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
func decide(
	ctx context.Context, s *command.Session, who command.Identity, q command.Question, given command.WrittenObjects,
) (ruling, error) {
	a, said := authorize(ctx, s, who, q)
	by, err := evaluateWrite(ctx, s, who, q, given, a.Answer)
	if err != nil {
		return ruling{}, err
	}
	if err := s.State.ReadErr(); err != nil {
		return ruling{}, err
	}
	admitted(s, &a, by)
	return ruling{answer: a, said: said, admission: by}, nil
}

func authorize(ctx context.Context, s *command.Session, who command.Identity, q command.Question) (answer, chain.Result) {
	req := q.Request(who)
	result, _ := s.Chain.Explain(ctx, req) // the opinions hold the errors
	result.Opinions = slices.DeleteFunc(result.Opinions, func(o chain.Opinion) bool {
		return o.Authorizer == chain.NameMasters && o.Decision == verdict.NoOpinion
	})
	a := answer{
		Answer: command.No, Identity: who, Request: q, Decision: result.Decision, DecidedBy: result.DecidedBy,
		Reason: remediedReason{Reason: evaluate.Main(result).Reason}, State: s.Info(),
	}
	a.Notes = containmentNotes(s, req, result)
	if contained(s, result) {
		if a.Reason.Code == nodescope.ScopeTokenWithoutNode && who.TokenNode == "" {
			a.Reason.Hint = "to ask about the token of a pod, add --token-node NODE, or name the pod with --pod NAMESPACE/NAME; " +
				a.Reason.Hint
		}
		return a, result
	}
	var lacks []evaluate.Lack
	// An authorizer allows after one that only refuses failed.
	inDoubt := result.Decision != verdict.Allow &&
		slices.ContainsFunc(result.Opinions, func(o chain.Opinion) bool { return o.Decision == verdict.Allow })
	switch {
	case inDoubt:
		a.Missing = append(command.Unreadable(s.UnreadContainment(req)), s.AsMissing(s.LackingForScopes(req))...)
	case result.Decision != verdict.Allow:
		a.Missing, lacks = missingFor(s, req, evaluate.Main(result).Code, s.AsksRBAC(result))
		a.Missing = append(a.Missing, s.AsMissing(lacks)...)
	}
	why := result.Doubt()
	switch {
	case why != "" && (inDoubt || !s.NeedsRBAC(result)):
		a.undecided(verdict.Reason{Code: command.CodeEvaluationFailed, Message: why})
	case len(lacks) > 0:
		a.undecided(s.LackReason(lacks, who))
		noteOrigin(result.Opinions, s.State.Origin)
	case s.NeedsRBAC(result) && (!who.IsNode || s.Configured != ""):
		a.undecided(s.RBACNeeded(who))
	case why != "":
		a.undecided(verdict.Reason{Code: command.CodeEvaluationFailed, Message: why})
	case result.Decision == verdict.Allow:
		a.Answer = command.Yes
	}
	if len(a.Missing) > 0 {
		a.Answer = command.Unknown
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
	a.Answer, a.Decision, a.DecidedBy, a.Reason = command.Unknown, verdict.NoOpinion, "", remediedReason{Reason: why}
}

func missingFor(
	s *command.Session, req *access.Request, code verdict.Code, asksRBAC bool,
) (unread []command.Missing, lacks []evaluate.Lack) {
	return command.Unreadable(s.Unread(req, code, asksRBAC)), s.Lacking(req, code, asksRBAC)
}

func (a answer) status() int {
	switch a.Answer {
	case command.Yes:
		return command.StatusAllowed
	case command.No:
		return command.StatusDenied
	}
	return command.StatusUndecided
}

func (a answer) styled() string { return command.AnswerStyle(a.Answer).In(a.Answer) }

func (a answer) line() string { return a.styled() + a.why() }

// why returns the rest of the line after the answer.
func (a answer) why() string {
	line := a.onlyNameText()
	switch {
	case len(a.Conditions) > 0:
		if left := conditionsExceptName(a.Conditions); len(left) > 0 {
			line += ", if " + passesRestriction(a.Request) + ": " + strings.Join(requirements(left), "; ")
		}
		return line
	case a.Reason.Message != "":
		line += ": " + a.Reason.Message
	}
	if names := command.UnreadNames(a.Missing); len(names) > 0 && !strings.Contains(line, "could not read "+strings.Join(names, ", ")) {
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

func requirements(all []noderestriction.Condition) []string {
	lines := make([]string, len(all))
	for i, c := range all {
		lines[i] = c.Requires
	}
	return lines
}

// contained reports whether a NodeScope or a Quarantine of the state refuses. No other authorizer can
// change that.
func contained(s *command.Session, result chain.Result) bool {
	return s.Configured == "" && result.Decision == verdict.Deny && command.Assumption(result.DecidedBy) != ""
}

// containmentNotes returns what the answer to a request assumes because of NodeScopes and Quarantines.
func containmentNotes(s *command.Session, req *access.Request, result chain.Result) []string {
	if contained(s, result) {
		return []string{command.Assumption(result.DecidedBy)}
	}
	if result.Decision != verdict.Allow {
		return nil
	}
	if scope, except := s.RefusesNames(req); scope != "" {
		return []string{fmt.Sprintf("admission checks the name too: NodeScope %s refuses other names than %s", scope, except)}
	}
	refuses := s.Unasked(req)
	known := []string{chain.NameMasters, chain.NameNode, chain.NameRBAC, chain.NameAlwaysAllow, chain.NameAlwaysDeny}
	switch {
	case refuses == "":
		return nil
	case slices.ContainsFunc(s.Chain.Names(), func(name string) bool { return !slices.Contains(known, name) }): // a webhook
		return []string{fmt.Sprintf("%s refuses this; %s says whether a webhook is asked, and its answer counts", refuses, s.Configured)}
	}
	return []string{fmt.Sprintf("%s refuses this, but %s asks no webhook about it", refuses, s.Configured)}
}

func quarantinedText(name string) string {
	assumption := command.Assumption(chain.NameQuarantine)
	return "Quarantine " + name + " refuses these requests, but for those that it excepts; this " + assumption + "."
}

func (r CanIList) scopesText(p *render.Page) {
	if !r.Scoped {
		return
	}
	p.Section("NodeScopes")
	switch {
	case len(r.Scopes) == 0 && r.Identity.TokenNode == "":
		p.Line("  they let pass nothing of a token without a node: name one with --token-node or --pod")
	case len(r.Scopes) == 0:
		p.Line("  they let pass nothing")
	default:
		p.Line("  Of each NodeScope, a request has to be named by one of its rules.")
		var rows [][]string
		for i := range r.Scopes {
			rows = append(rows, passingRow(&r.Scopes[i]))
		}
		p.Table(2, []string{"NODESCOPE", "RULE", "RESOURCE OR URL", "VERBS", "PASSES"}, rows)
	}
	p.Line("  %s", render.Unsure.In("this "+command.Assumption(chain.NameNodeScope)))
}

func passingRow(pass *nodescope.Passing) []string {
	names := listedRule{APIGroups: pass.APIGroups, Resources: pass.Resources, NonResourceURLs: pass.NonResourceURLs}
	requires := pass.Requires
	switch {
	case pass.Name != "":
		requires = "of the name " + pass.Name
	case pass.FieldSelector != "":
		requires = "where " + pass.FieldSelector
	case len(pass.ResourceNames) > 0:
		requires = "of the names " + strings.Join(pass.ResourceNames, ", ")
	}
	if len(pass.Namespaces) > 0 {
		requires += ", in " + render.Join(pass.Namespaces, "and")
	}
	scope := pass.Scope
	if pass.Mode == v1alpha1.Observe {
		scope += " (observes only)"
	}
	return []string{scope, pass.Rule, names.target(), strings.Join(pass.Verbs, ","), requires}
}
