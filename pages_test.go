package nodeauthorizer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const maxReadme, maxGuide, maxReference, mostBefore = 160, 200, 600, 10

// TestGuidesAreShort: a reader sees the README and a guide at a glance. A guide begins with the command, after a few lines at most,
// and ends with what can go wrong.
func TestGuidesAreShort(t *testing.T) {
	if lines := strings.Count(readPage(t, "README.md"), "\n"); lines > maxReadme {
		t.Errorf("README.md has %d lines, want %d at most", lines, maxReadme)
	}
	guides, err := filepath.Glob("docs/guides/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatal(guides, err)
	}
	for _, guide := range guides {
		text := readPage(t, guide)
		if lines := strings.Count(text, "\n"); lines > maxGuide {
			t.Errorf("%s has %d lines, want %d at most", guide, lines, maxGuide)
		}
		if last := text[strings.LastIndex(text, "\n## ")+1:]; !strings.HasPrefix(last, "## What can go wrong\n") {
			t.Errorf("%s does not end with \"What can go wrong\"", guide)
		}
		before, _, found := strings.Cut(text, "```")
		if !found || strings.Contains(before, "\n#") || strings.Count(before, "\n") > mostBefore {
			t.Errorf("%s does not begin with a command", guide)
		}
	}
}

// TestEveryPageIsInAnIndex: docs/README.md links to every page, or to the README of its folder, which links to the page.
func TestEveryPageIsInAnIndex(t *testing.T) {
	pages := 0
	for _, pattern := range []string{"docs/*/*.md", "docs/*/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			pages++
			index := filepath.Join(filepath.Dir(page), "README.md")
			if _, err := os.Stat(index); err != nil || index == page || index == "docs/reference/README.md" {
				index = "docs/README.md"
			}
			address, err := filepath.Rel(filepath.Dir(index), page)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(readPage(t, index), "]("+address) {
				t.Errorf("%s has no link to %s", index, address)
			}
		}
	}
	if pages < 60 {
		t.Errorf("only %d pages were found", pages)
	}
}

// TestReferenceIsDividedBySubject: a page of reference has at most maxReference lines.
func TestReferenceIsDividedBySubject(t *testing.T) {
	for _, pattern := range []string{"docs/reference/*.md", "docs/reference/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		for _, page := range found {
			if lines := strings.Count(readPage(t, page), "\n"); lines > maxReference {
				t.Errorf("%s has %d lines, want %d at most: divide it by subject", page, lines, maxReference)
			}
		}
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
