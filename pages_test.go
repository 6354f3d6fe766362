package nodeauthorizer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// longGuides are guides that are longer than maxGuide, or say elsewhere what can go wrong. The list only shrinks.
var longGuides = map[string]bool{
	"audit.md": true, "bootstrap.md": true, "containment.md": true, "iam.md": true, "install.md": true, "migration.md": true,
	"pull-requests.md": true,
}

const maxReadme, maxGuide, maxReference = 160, 200, 600

// TestGuidesAreShort: a reader sees the README and a guide at a glance, and a guide ends with what can go wrong.
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
		last := text[strings.LastIndex(text, "\n## ")+1:]
		short := strings.Count(text, "\n") <= maxGuide && strings.HasPrefix(last, "## What can go wrong\n")
		if listed := longGuides[filepath.Base(guide)]; short == listed {
			t.Errorf("%s: at most %d lines and \"What can go wrong\" as the last section: %v; in longGuides: %v",
				guide, maxGuide, short, listed)
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
