package attackpaths_test

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
)

// Each technique has a section in docs/reference/techniques, and each section a technique.
func TestEachTechniqueIsDocumented(t *testing.T) {
	sections := techniqueSections()
	for _, technique := range attackpaths.Techniques() {
		code, body := string(technique.Code), sections[string(technique.Code)]
		delete(sections, code)
		for _, part := range []string{
			"**From → to:**", "**Allowed by:**", "**Take it away:**", "**Remedy:**", "**Since:**", "**ATT&CK:**",
		} {
			if !strings.Contains(body, part) {
				t.Errorf("%s: the section has no %q", code, part)
			}
		}
		if !strings.Contains(body+"\n", "**ATT&CK:** "+technique.ATTACK+"\n") {
			t.Errorf("%s: the section does not have the id %s", code, technique.ATTACK)
		}
	}
	for code := range sections {
		t.Errorf("%s has a section, and is no technique", code)
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

// techniqueSections are the sections of docs/reference/techniques by their codes.
func techniqueSections() map[string]string {
	sections := map[string]string{}
	for _, s := range reference.Sections() {
		if s.Kind == reference.Technique {
			sections[s.Code] = s.Text
		}
	}
	return sections
}

// techniquePage returns the section of a technique, as a link from docs/reference.
func techniquePage(code attackpaths.Code) string {
	return strings.TrimPrefix(reference.Link(reference.Technique, string(code)), reference.URL)
}
