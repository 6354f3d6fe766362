package scopes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

const (
	tableBegins = "<!-- Written by \"UPDATE_GOLDEN=1 go test ./internal/scopes -run TestReadme\"; do not edit. -->\n"
	tableEnds   = "<!-- End of what is written. -->\n"
)

// TestReadme keeps the table of the README.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegins)
	_, after, ended := strings.Cut(rest, tableEnds)
	if !found || !ended {
		t.Fatal("the README has no place for the table")
	}
	want := before + tableBegins + "\n" + table(t) + "\n" + tableEnds + after
	if string(text) == want {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatal("the table of the README is not that of the scopes; UPDATE_GOLDEN=1 writes it")
	}
	if err := os.WriteFile(filepath.Join(folder, "README.md"), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| scope | agent | account | passes for its own node only | passes for the whole cluster |\n|---|---|---|---|---|\n")
	for _, a := range readAgents(t) {
		limited, open := a.passing(t)
		fmt.Fprintf(&b, "| [%s](%[1]s.yaml) | [%s](%s) %s | `%s/%s` | %s | %s |\n", a.name, a.day.Agent, a.day.Project, a.day.Release,
			a.day.Account.Namespace, a.day.Account.Name, cell(limited), cell(open))
	}
	return b.String()
}

func cell(lines []string) string {
	if len(lines) == 0 {
		return "nothing"
	}
	return strings.Join(lines, "<br>")
}

// passing lists what the rules of a scope let pass: for the node only, and for the whole cluster.
func (a *agent) passing(t *testing.T) (limited, open []string) {
	t.Helper()
	spec := &a.scope.Spec
	if spec.AsNode {
		limited, open = a.passingAsNode(t)
	}
	for _, r := range spec.NamedAsNode {
		limited = append(limited, line(r.Verbs, r.Resources, r.Namespaces, "of its name"))
	}
	for _, r := range spec.SelectsNode {
		limited = append(limited, line(r.Verbs, r.Resources, r.Namespaces, "with the selector `"+r.Field+"`"))
	}
	for _, r := range spec.PodsOnNode {
		limited = append(limited, line(r.Verbs, r.Resources, r.Namespaces, "on it"))
	}
	for _, r := range spec.Anywhere {
		named := ""
		if len(r.ResourceNames) > 0 {
			named = "called `" + strings.Join(r.ResourceNames, "`, `") + "`"
		}
		open = append(open, line(r.Verbs, append(r.Resources, r.NonResourceURLs...), r.Namespaces, named))
	}
	return limited, open
}

// passingAsNode divides the rights that the node has too: those that it has for itself, and those that it has
// for all.
func (a *agent) passingAsNode(t *testing.T) (limited, open []string) {
	t.Helper()
	authorizer := a.authorizer(t, a.scope)
	for _, r := range a.rights {
		var own, all []string
		for asked := range each(r.rule.APIGroups, r.rule.Resources, r.rule.Verbs, []string{r.namespace}) {
			switch {
			case !a.passesAsNode(authorizer, asked):
			case a.passesForOther(authorizer, asked):
				all = append(all, asked.Verb)
			default:
				own = append(own, asked.Verb)
			}
		}
		if len(own) > 0 {
			limited = append(limited, line(distinct(own), r.rule.Resources, nil, "of its name, as the node may"))
		}
		if len(all) > 0 {
			open = append(open, line(distinct(all), r.rule.Resources, nil, "as the node may"))
		}
	}
	return limited, open
}

func (a *agent) passesForOther(authorizer *nodescope.Authorizer, asked access.Request) bool {
	asked.Name = foreign
	answer := authorizer.Decide(a.tokenOf(own, asked))
	return !answer.Refused()
}

func distinct(list []string) []string {
	var once []string
	for _, s := range list {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}

// line describes one rule; verbs that write are bold.
func line(verbs, resources, namespaces []string, more string) string {
	var marked []string
	for _, verb := range verbs {
		if !slices.Contains([]string{"get", "list", "watch"}, verb) {
			verb = "**" + verb + "**"
		}
		marked = append(marked, verb)
	}
	words := []string{strings.Join(marked, ", "), "`" + strings.Join(resources, "`, `") + "`"}
	if len(namespaces) > 0 {
		words = append(words, "in `"+strings.Join(namespaces, "`, `")+"`")
	}
	return strings.Join(slices.DeleteFunc(append(words, more), func(s string) bool { return s == "" }), " ")
}
