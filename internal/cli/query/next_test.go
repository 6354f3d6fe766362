package query

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestEveryRefusalHasANextCommand: the change if there is one, unless the code has a command of its own; else the meaning, of
// which the reference has a section.
func TestEveryRefusalHasANextCommand(t *testing.T) {
	var own []string
	for _, s := range reference.Sections() {
		if s.Kind != reference.Reason {
			continue
		}
		r := ExplainResult{again: repeat{root: "node-authorizer", node: true}}
		r.Reason.Code, r.Identity.Node = verdict.Code(s.Code), "n"
		r.Request = command.Question{Verb: "get", Resource: "nodes", Name: "n"}
		_, meaning := r.next()
		r.Reason.Remedy = &verdict.Remedy{}
		_, change := r.next()
		switch {
		case change == meaning:
			own = append(own, s.Code+": "+meaning)
		case change != "node-authorizer explain get nodes/n --node n --fix":
			t.Errorf("%s, if there is a change: %s", s.Code, change)
		case meaning != "node-authorizer explain-code "+s.Code:
			t.Errorf("%s, if there is no change: %s", s.Code, meaning)
		}
	}
	if want := []string{
		"CredentialQuarantined: node-authorizer quarantine list",
		"NoBindingAllows: node-authorizer can-i --list --node n",
		"NodeQuarantined: node-authorizer quarantine list",
	}; !slices.Equal(own, want) {
		t.Errorf("codes with a command of their own are\n%s", strings.Join(own, "\n"))
	}
}
