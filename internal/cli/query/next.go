package query

import (
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// next is the command that helps after a refusal.
type next struct {
	prints string
	line   func(ExplainResult) string
}

var (
	listQuarantines = next{"who cut it off, and until when", func(r ExplainResult) string { return r.again.root + " quarantine list" }}

	// nextCommands has the codes that a command of their own explains. After other refusals the change helps, and where nothing
	// can be changed, the meaning of the code.
	nextCommands = map[verdict.Code]next{
		chain.CodeNoBindingAllows: {"what the user may do", func(r ExplainResult) string {
			return r.again.line("can-i", []string{"--list"}, r.Identity, r.Identity.Groups, nil)
		}},
		quarantine.NodeQuarantined:       listQuarantines,
		quarantine.CredentialQuarantined: listQuarantines,
	}
	nextChange = next{"what to change", func(r ExplainResult) string {
		return r.again.command("explain", r.Request, r.Identity, nil, "--fix")
	}}
	nextMeaning = next{"what the code means, and what to do", func(r ExplainResult) string {
		return r.again.root + " explain-code " + string(r.Reason.Code)
	}}
)

// next returns the command to run after a refusal.
func (r ExplainResult) next() next {
	special, found := nextCommands[r.Reason.Code]
	switch {
	case found:
		return special
	case r.Reason.Remedy != nil && r.Reason.Remedy.None == "":
		return nextChange
	}
	return nextMeaning
}

// nextText ends the explanation of a refusal.
func (r ExplainResult) nextText(p *render.Page) {
	if r.Answer == command.No {
		n := r.next()
		p.Section("Next: %s", n.prints)
		p.Script("  %s", n.line(r))
	}
}
