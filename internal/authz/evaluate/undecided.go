package evaluate

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// UnreadError means that a refusal is undecided, because resources that could change it
// could not be read.
type UnreadError struct{ Resources []source.Missing }

// Error names the resources.
func (e *UnreadError) Error() string {
	names := make([]string, len(e.Resources))
	for i, m := range e.Resources {
		names[i] = m.Resource.String()
	}
	return "could not read " + strings.Join(names, ", ")
}

// LackError means that a refusal is undecided, because the files lack what could change it.
type LackError struct{ Lacks []Lack }

// namedLacks is the number of missing objects that an error names.
const namedLacks = 3

// Error names the first few. The text depends only on what the files hold.
func (e *LackError) Error() string {
	names := make([]string, 0, namedLacks)
	for _, l := range e.Lacks[:min(namedLacks, len(e.Lacks))] {
		names = append(names, l.String())
	}
	text := "the input lacks " + strings.Join(names, "; ")
	if more := len(e.Lacks) - namedLacks; more > 0 {
		text += fmt.Sprintf("; and %s more", render.Thousands(more))
	}
	return text
}

// Unread returns the resources that could not be read and could change a refusal: by the
// Node authorizer with the given code, and by RBAC, if it was asked.
func (e *Evaluator) Unread(req *access.Request, code verdict.Code, asksRBAC bool) []source.Missing {
	on := authorizationReads(code, req)
	if asksRBAC {
		on |= source.RBACKinds()
	}
	return unread(e.State, on)
}

// undecided returns an error if missing state could change a refusal.
func (e *Evaluator) undecided(req *access.Request, code verdict.Code, asksRBAC bool) error {
	if missing := e.Unread(req, code, asksRBAC); len(missing) > 0 {
		return &UnreadError{missing}
	}
	if lacks := e.Lacking(req, code, asksRBAC); len(lacks) > 0 {
		return &LackError{lacks}
	}
	return nil
}

// evaluationError returns the evaluationError that an API server puts beside its answer:
// the error of the authorizer that denies, or the errors of all authorizers if none decides.
func evaluationError(result chain.Result) string {
	var failed []string
	for _, o := range result.Opinions {
		if o.Error != "" && result.Decision != verdict.Allow && (result.DecidedBy == "" || o.Authorizer == result.DecidedBy) {
			failed = append(failed, o.Failure())
		}
	}
	return strings.Join(failed, "; ")
}
