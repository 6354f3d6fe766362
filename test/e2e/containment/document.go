package containment

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const matrixHead = `# Containment matrix

This page shows what tokens of agents may do with the NodeScopes in [scopes](../../scopes) and without them, as a real
control plane answers. ` + "`make containment-matrix`" + ` writes this file.

Each account has a token that is bound to its pod on node A. It has the rights of the role of the
agent's release. Each request that a rule of the NodeScope names is sent about node A (**own**) and
about node B (**other**): about the object with the node's name, with a field selector for the node, or
about a pod on it. A dash means that the rule does not depend on the node. In the mode Observe, all
answers are the same as without a NodeScope.
`

// matrixDocument is docs/evidence/containment-matrix.md.
func matrixDocument(all []*matrix) string {
	var d strings.Builder
	d.WriteString(matrixHead)
	d.WriteString("\n| agent | requests by rules | about the other node | refused of these | rights without a rule | refused of these |\n")
	d.WriteString("|---|---:|---:|---:|---:|---:|\n")
	for _, x := range all {
		var named, foreign, refused, unnamed, ended int
		for _, r := range x.rows {
			if r.rule == "" {
				unnamed++
				ended += count(r.own[enforce].refused())
				continue
			}
			named++
			if r.probe.foreign != nil {
				foreign++
				refused += count(r.foreign[enforce].refused())
			}
		}
		fmt.Fprintf(&d, "| [%s](#%[1]s) | %d | %d | %d | %d | %d |\n", x.agent.name, named, foreign, refused, unnamed, ended)
	}
	for _, x := range all {
		x.section(&d)
	}
	return d.String()
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (x *matrix) section(d *strings.Builder) {
	fmt.Fprintf(d, "\n## %s\n\nAccount %s/%s. A token that is bound to no pod: %s.\n\n", x.agent.name, x.agent.account.Namespace,
		x.agent.account.Name, change(x.unboundAnswer))
	d.WriteString("| rule | request | own | other |\n|---|---|---|---|\n")
	for i := 0; i < len(x.rows); {
		first := x.rows[i]
		verbs := []string{first.verb}
		for i++; i < len(x.rows) && x.rows[i].sameCells(first); i++ {
			verbs = append(verbs, x.rows[i].verb)
		}
		other := "–"
		if first.probe.foreign != nil {
			other = change(first.foreign)
		}
		rule := first.rule
		if rule == "" {
			rule = "none"
		}
		fmt.Fprintf(d, "| %s | %s `%s` | %s | %s |\n", rule, strings.Join(verbs, ", "), first.resource, change(first.own), other)
	}
	if len(x.skipped) > 0 {
		fmt.Fprintf(d, "\nNot tried, because Kubernetes does not serve it any more: %s.\n", strings.Join(x.skipped, ", "))
	}
}

func (r *row) sameCells(other *row) bool {
	return r.rule == other.rule && r.resource == other.resource && change(r.own) == change(other.own) &&
		(r.probe.foreign == nil) == (other.probe.foreign == nil) && (r.probe.foreign == nil || change(r.foreign) == change(other.foreign))
}

// change describes the answer without the scope and with it.
func change(answers map[mode]answer) string {
	switch before, after := answers[none], answers[enforce]; {
	case !before.refused() && !after.refused():
		return "allowed"
	case !before.refused():
		return "allowed → **refused** " + string(codeOf(after))
	default:
		return "refused"
	}
}

// codeOf returns the code of a refusal by the sentence in its answer.
func codeOf(a answer) verdict.Code {
	for _, code := range []verdict.Code{
		nodescope.ScopeTokenWithoutNode, nodescope.ScopeNoRule, nodescope.ScopeNotAsNode, nodescope.ScopeNameNotNode,
		nodescope.ScopeSelectorRequired, nodescope.ScopePodNotOnNode, nodescope.ScopeAggregatedAPI,
	} {
		if strings.Contains(a.message(), nodescope.Summary(code)) {
			return code
		}
	}
	return "by " + verdict.Code(a.message())
}
