package nodeauthorizer_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestIndexOfCodes writes the index of all codes, from the headings of the pages that describe them. Other tests check that
// these pages have each code.
func TestIndexOfCodes(t *testing.T) {
	const path = "docs/reference/README.md"
	sections := map[string][]string{} // by code
	for _, page := range []struct{ kind, path, level string }{
		{"reason", "reasons/README.md", "###"}, {"finding", "findings/README.md", "###"}, {"technique", "techniques.md", "##"},
	} {
		// A heading of one word is a code, except for Remedies on the page of techniques.
		heading := regexp.MustCompile("(?m)^" + page.level + " `?([A-Z][A-Za-z0-9]+)`?$")
		found := heading.FindAllStringSubmatch(readPage(t, "docs/reference/"+page.path), -1)
		if len(found) < 20 {
			t.Errorf("%s has only %d codes", page.path, len(found))
		}
		for i := range found {
			code := found[i][1]
			if code == "Remedies" {
				continue
			}
			if slices.ContainsFunc(found[:i], func(h []string) bool { return h[1] == code }) {
				t.Errorf("%s has two sections %s: a link leads to the first", page.path, code)
			}
			link := fmt.Sprintf("[%s](%s#%s)", page.kind, page.path, strings.ToLower(code))
			sections[code] = append(sections[code], link)
		}
	}
	var rows []string
	for code, links := range sections {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", code, strings.Join(links, ", ")))
	}
	slices.Sort(rows)
	want := "# Codes\n\nEach code that node-authorizer prints has a section that says what it means and what to do. " +
		"A *reason* is the code of an\nanswer, a *finding* of the doctor, a *technique* of a step of an attack path. " +
		"Codes are stable.\n\n" +
		"| code | section |\n|---|---|\n" + strings.Join(rows, "")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readPage(t, path) != want {
		t.Errorf("%s is not the index of the codes: UPDATE_GOLDEN=1 go test -run TestIndexOfCodes . writes it", path)
	}
}
