package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

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

// quarantinedText says what a Quarantine of a node means for a list of the node's rights.
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
