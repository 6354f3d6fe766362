package attackpaths_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Each technique has a section in docs/reference/techniques.md, and each section a technique.
func TestEachTechniqueIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/techniques.md")
	if err != nil {
		t.Fatal(err)
	}
	builtIn, _, found := strings.Cut(string(text), "\n## Techniques of your own\n")
	if !found {
		t.Error("there is no section about techniques of your own")
	}
	sections := strings.Split(builtIn, "\n## ")[1:]
	var documented []string
	for i, section := range sections {
		code, body, _ := strings.Cut(section, "\n")
		documented = append(documented, code)
		for _, part := range []string{
			"**From → to:**", "**Allowed by:**", "**Take it away:**", "**Remedy:**", "**Since:**", "**ATT&CK:**",
		} {
			if !strings.Contains(body, part) {
				t.Errorf("%s: the section has no %q", code, part)
			}
		}
		if i >= len(attackpaths.Techniques()) {
			continue
		}
		if technique := attackpaths.Techniques()[i]; !strings.Contains(body, "**ATT&CK:** "+technique.ATTACK+"\n") {
			t.Errorf("%s: the section does not have the id %s", code, technique.ATTACK)
		}
	}
	var codes []string
	for _, technique := range attackpaths.Techniques() {
		codes = append(codes, string(technique.Code))
	}
	if !slices.Equal(documented, codes) {
		t.Errorf("documented are\n%q\nthe table has\n%q", documented, codes)
	}
}

// remedyWords are what the sections say about remedies of some kind.
var remedyWords = map[string]string{
	"claim": "the claim is deleted",
	"right": "the right", "template": "the pod's template", "secret": "the secret is deleted", "label": "the label",
	"node": "the nodes", "volume": "the volume", "none": "one",
}

// checkRemedyIsDocumented compares a remedy with the section of its technique.
func checkRemedyIsDocumented(t *testing.T, sections map[string]string, step attackpaths.Step) {
	t.Helper()
	kinds := map[string]bool{}
	for _, c := range step.Remedy.Changes {
		switch c.Object.Kind {
		case "Namespace":
			kinds["label"] = true
		case "Node":
			kinds["node"] = true
		case "PersistentVolume":
			kinds["volume"] = true
		case "Secret":
			kinds["secret"] = true
		case "PersistentVolumeClaim":
			kinds["claim"] = true
		case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
			kinds["right"] = true
		default:
			kinds["template"] = true
		}
	}
	if len(kinds) == 0 {
		kinds["none"] = true
	}
	_, text, _ := strings.Cut(sections[string(step.Technique)], "- **Remedy:** ")
	text, _, _ = strings.Cut(text, "\n- ")
	text = strings.Join(strings.Fields(text), " ")
	for kind := range kinds {
		if !strings.Contains(text, remedyWords[kind]) && !strings.HasPrefix(string(step.Technique), randomCustom) {
			t.Errorf("%s has a remedy of the kind %s: %+v, and the section says %q", step.Technique, kind, *step.Remedy, text)
		}
	}
}

// techniqueSections are the sections of docs/reference/techniques.md.
func techniqueSections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/techniques.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ") {
		code, body, _ := strings.Cut(section, "\n")
		sections[code] = body
	}
	return sections
}
