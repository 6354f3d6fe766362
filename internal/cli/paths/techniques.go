package paths

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

// readTechniques reads files with techniques that the user adds to the built-in ones.
func readTechniques(a *command.App, paths []string) ([]attackpaths.CustomTechnique, error) {
	taken := map[string]string{}
	for _, t := range attackpaths.Techniques() {
		taken[string(t.Code)] = "a built-in technique"
	}
	var all []attackpaths.CustomTechnique
	for _, path := range paths {
		text, err := readTechniquesFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the techniques: %w", err)
		}
		file, err := v1alpha1.ParseTechniques(text, taken)
		if problems := (v1alpha1.Problems{}); errors.As(err, &problems) {
			for _, line := range command.ConfigProblems(path, problems[:min(command.WarningRows, len(problems))]) {
				a.Failure("%s", line)
			}
			if more := len(problems) - command.WarningRows; more > 0 {
				a.Failure("%s: and %s", path, render.Count(more, "other mistake"))
			}
			return nil, fmt.Errorf("the techniques in %s are not valid", path)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i := range file.Techniques {
			all = append(all, customTechnique(&file.Techniques[i]))
			taken[file.Techniques[i].Code] = "a technique of " + path
		}
	}
	if len(all) > attackpaths.MaxCustomTechniques {
		return nil, fmt.Errorf("the files have %d techniques together, want at most %d", len(all), attackpaths.MaxCustomTechniques)
	}
	return all, nil
}

// readTechniquesFile reads no more than a file may have.
func readTechniquesFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, v1alpha1.MaxTechniquesFile+1))
}

func customTechnique(t *v1alpha1.Technique) attackpaths.CustomTechnique {
	custom := attackpaths.CustomTechnique{
		Technique: attackpaths.Technique{Code: attackpaths.Code(t.Code), Summary: t.Summary, ATTACK: t.Attack},
		AllowedBy: customRequests(t.AllowedBy), With: customRequests(t.With),
		DependsOn: t.DependsOn, Remedy: t.Remedy,
	}
	for _, h := range t.Gives {
		custom.Gives = append(custom.Gives, attackpaths.Holding{Kind: string(h.Kind), Namespace: h.Namespace, Name: h.Name})
	}
	return custom
}

func customRequests(all []v1alpha1.TechniqueRequest) []attackpaths.CustomRequest {
	var requests []attackpaths.CustomRequest
	for _, r := range all {
		requests = append(requests, attackpaths.CustomRequest{
			Verbs: r.Verbs, APIGroup: r.APIGroup, Resource: r.Resource, Subresource: r.Subresource,
			ClusterScoped: r.Scope == v1alpha1.ClusterScope, Namespace: r.Namespace, Name: r.Name,
		})
	}
	return requests
}

// noteGaps says what custom techniques name and the state does not have.
func noteGaps(a *command.App, gaps []attackpaths.Gap) {
	for _, gap := range gaps[:min(command.WarningRows, len(gaps))] {
		a.PrintLine("note: ", fmt.Sprintf("technique %s: %s; nothing is reached through it", gap.Technique, gap.Lacks))
	}
	if more := len(gaps) - command.WarningRows; more > 0 {
		a.PrintLine("note: ", fmt.Sprintf("and %s more that techniques name and the state lacks", render.Thousands(more)))
	}
}

func customRules(custom []attackpaths.CustomTechnique) []sarif.Rule {
	var rules []sarif.Rule
	for i := range custom {
		t := &custom[i]
		help := "Take it away: " + strings.TrimSuffix(t.Remedy, ".") + "."
		if t.ATTACK != "" {
			help += " MITRE ATT&CK " + t.ATTACK + "."
		}
		rules = append(rules, sarif.CodeRule(string(t.Code), Sentence(t.Summary), Sentence(t.Summary)+" "+allowedByText(t), help,
			reference.URL+"techniques/own.md", "error"))
	}
	return rules
}

func allowedByText(t *attackpaths.CustomTechnique) string {
	list := func(all []attackpaths.CustomRequest) string {
		var parts []string
		for _, r := range all {
			parts = append(parts, r.String())
		}
		return strings.Join(parts, "; ")
	}
	text := "Allowed by: " + list(t.AllowedBy) + "."
	if len(t.With) > 0 {
		text += " Together with: " + list(t.With) + "."
	}
	if t.DependsOn != "" {
		text += " Depends on: " + strings.TrimSuffix(t.DependsOn, ".") + "."
	}
	return text
}

// Sentence begins with a capital letter and ends with a full stop.
func Sentence(text string) string {
	first := string([]rune(text)[:1])
	return strings.ToUpper(first) + strings.TrimSuffix(strings.TrimPrefix(text, first), ".") + "."
}
