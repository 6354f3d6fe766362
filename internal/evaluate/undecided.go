package evaluate

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// UnreadError says that a refusal is not decided, because resources that could turn it
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

// LackError says that a refusal is not decided, because files lack what could turn it.
type LackError struct{ Lacks []Lack }

// namedLacks is how many an error names.
const namedLacks = 3

// Error names the first of them, the same for all files that hold the same.
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

// Unread are the resources that could not be read and could turn a refusal by the Node
// authorizer, for the reason that the code names, and by RBAC, if it was asked.
func (e *Evaluator) Unread(req *access.Request, code verdict.Code, asksRBAC bool) []source.Missing {
	on := authorizationReads(code, req)
	if asksRBAC {
		on |= source.RBACKinds()
	}
	return unread(e.State, on)
}

// undecided is the error of a refusal that something could turn; nil if nothing can.
func (e *Evaluator) undecided(req *access.Request, code verdict.Code, asksRBAC bool) error {
	if missing := e.Unread(req, code, asksRBAC); len(missing) > 0 {
		return &UnreadError{missing}
	}
	if lacks := e.Lacking(req, code, asksRBAC); len(lacks) > 0 {
		return &LackError{lacks}
	}
	return nil
}

// evaluationError is what an API server says beside an answer that is none the less
// its answer: the error of who denies, or of all if nobody decides.
func evaluationError(result chain.Result) string {
	var failed []string
	for _, o := range result.Opinions {
		if o.Error != "" && result.Decision != verdict.Allow && (result.DecidedBy == "" || o.Authorizer == result.DecidedBy) {
			failed = append(failed, o.Failure())
		}
	}
	return strings.Join(failed, "; ")
}
