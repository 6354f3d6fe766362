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

const maxReadme, maxGuide = 160, 200

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

// TestEveryPageIsInTheIndex: docs/README.md links to every page.
func TestEveryPageIsInTheIndex(t *testing.T) {
	index := readPage(t, "docs/README.md")
	pages := 0
	for _, pattern := range []string{"docs/*/*.md", "docs/*/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			pages++
			if address := strings.TrimPrefix(page, "docs/"); !strings.Contains(index, "]("+address) {
				t.Errorf("docs/README.md has no link to %s", address)
			}
		}
	}
	if pages < 25 {
		t.Errorf("only %d pages were found", pages)
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
