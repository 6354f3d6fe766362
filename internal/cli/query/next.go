package query

import (
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
)

// next returns the command to run after a refusal, and what it prints: a change if there is one, else the meaning of the code. A few
// codes have commands of their own.
func (r ExplainResult) next() (prints, line string) {
	switch r.Reason.Code {
	case chain.CodeNoBindingAllows:
		return "what the user may do", r.again.line("can-i", []string{"--list"}, r.Identity, r.Identity.Groups, nil)
	case quarantine.NodeQuarantined, quarantine.CredentialQuarantined:
		return "who cut it off, and until when", r.again.root + " quarantine list"
	}
	if r.Reason.Remedy != nil && r.Reason.Remedy.None == "" {
		return "what to change", r.again.command("explain", r.Request, r.Identity, nil, "--fix")
	}
	return "what the code means, and what to do", r.again.root + " explain-code " + string(r.Reason.Code)
}
