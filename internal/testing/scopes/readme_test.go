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
	tableBegins = "<!-- Written by \"UPDATE_GOLDEN=1 go test ./internal/testing/scopes -run TestReadme\"; do not edit. -->\n"
	tableEnds   = "<!-- End of the table. -->\n"
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

// passing lists the requests that the rules of a scope let pass: for the node only, and for the whole cluster.
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
		of := "on it"
		if len(r.APIGroups) > 0 {
			of = "named like pods on it"
		}
		limited = append(limited, line(r.Verbs, r.Resources, r.Namespaces, of))
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

// passingAsNode divides the rights that the node has too, and that no other rule names: those that it has for
// itself, and those that it has for all.
func (a *agent) passingAsNode(t *testing.T) (limited, open []string) {
	t.Helper()
	only := a.scope.DeepCopy()
	only.Spec.Anywhere = nil
	asNode, whole := a.authorizer(t, only), a.authorizer(t, a.scope)
	var mine, all verbsOf
	for _, r := range a.rights {
		for asked := range each(r.rule.APIGroups, r.rule.Resources, r.rule.Verbs, []string{r.namespace}) {
			switch resource := strings.TrimSuffix(asked.Resource+"/"+asked.Subresource, "/"); {
			case !a.passesAsNode(asNode, asked):
			case !a.passesForOther(whole, asked):
				mine.add(resource, asked.Verb)
			case a.passesForOther(asNode, asked):
				all.add(resource, asked.Verb)
			}
		}
	}
	return mine.lines("of it, as the node may"), all.lines("as the node may")
}

func (a *agent) passesForOther(authorizer *nodescope.Authorizer, asked access.Request) bool {
	answer := authorizer.Decide(a.tokenOf(own, namedOn(asked, foreign)))
	return !answer.Refused()
}

// verbsOf has the verbs of resources, in the order in which they were added.
type verbsOf []resourceVerbs

type resourceVerbs struct {
	resource string
	verbs    []string
}

func (v *verbsOf) add(resource, verb string) {
	i := slices.IndexFunc(*v, func(r resourceVerbs) bool { return r.resource == resource })
	if i < 0 {
		i = len(*v)
		*v = append(*v, resourceVerbs{resource: resource})
	}
	if r := &(*v)[i]; !slices.Contains(r.verbs, verb) {
		r.verbs = append(r.verbs, verb)
	}
}

func (v *verbsOf) lines(more string) []string {
	var lines []string
	for _, r := range *v {
		lines = append(lines, line(r.verbs, []string{r.resource}, nil, more))
	}
	return lines
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
