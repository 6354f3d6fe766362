package attackpaths_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Each technique has a section in docs/techniques.md, and each section a technique.
func TestEachTechniqueIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/techniques.md")
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
		for _, part := range []string{"**From → to:**", "**Allowed by:**", "**Take it away:**", "**ATT&CK:**"} {
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
