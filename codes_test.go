package nodeauthorizer_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/docs/reference"
)

// TestIndexOfCodes writes the index of all codes, from the sections of the pages that describe them. Other tests check that
// these pages have each code.
func TestIndexOfCodes(t *testing.T) {
	const path = "docs/reference/README.md"
	links, number := map[string][]string{}, map[reference.Kind]int{}
	for _, s := range reference.Sections() {
		link := strings.TrimPrefix(s.Link, reference.URL)
		if slices.ContainsFunc(links[s.Code], func(other string) bool { return strings.HasPrefix(other, "["+string(s.Kind)) }) {
			t.Errorf("%s has two sections of the kind %s", s.Code, s.Kind)
		}
		if reference.Link(s.Kind, s.Code) != s.Link {
			t.Errorf("%s: the link is %s, want %s", s.Code, reference.Link(s.Kind, s.Code), s.Link)
		}
		links[s.Code] = append(links[s.Code], fmt.Sprintf("[%s](%s)", s.Kind, link))
		number[s.Kind]++
	}
	for _, kind := range []reference.Kind{reference.Reason, reference.Finding, reference.Technique} {
		if number[kind] < 20 {
			t.Errorf("there are only %d sections of the kind %s", number[kind], kind)
		}
	}
	var rows []string
	for code, of := range links {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", code, strings.Join(of, ", ")))
	}
	slices.Sort(rows)
	want := "# Codes\n\nEach code that node-authorizer prints has a section that says what it means and what to do: " +
		"`node-authorizer explain-code\nCODE` prints it. A *reason* is the code of an answer, a *finding* of the doctor, " +
		"a *technique* of a step of an attack path.\nCodes are stable.\n\n" +
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

// TestLinksOfSectionsAreAbsolute: a section is read outside of its page.
func TestLinksOfSectionsAreAbsolute(t *testing.T) {
	links := 0
	for _, s := range reference.Sections() {
		for _, link := range strings.Split(s.Text, "](")[1:] {
			address, _, _ := strings.Cut(link, ")")
			if links++; !strings.HasPrefix(address, "https://") {
				t.Errorf("%s has a link to %s", s.Code, address)
			}
			file, ours := strings.CutPrefix(address, strings.TrimSuffix(reference.URL, "docs/reference/"))
			if file, _, _ = strings.Cut(file, "#"); ours {
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s has a link to %s: %v", s.Code, address, err)
				}
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links were read", links)
	}
}
