package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// manualPages are the manual pages of an archive.
func manualPages(files []entry) (pages []entry) {
	for _, f := range files {
		if strings.HasPrefix(f.name, manualFolder) {
			pages = append(pages, f)
		}
	}
	return pages
}

// checkManuals checks that pages of the release's version and date are there.
func checkManuals(t *testing.T, of *release, p platform, pages []entry) {
	t.Helper()
	const fewest = 15
	if len(pages) < fewest {
		t.Errorf("%s: the archive has only %d manual pages", p, len(pages))
	}
	for _, page := range pages {
		name := strings.TrimSuffix(strings.TrimPrefix(page.name, manualFolder), ".1")
		title := fmt.Sprintf(`.TH "%s" "1" "%s" "node-authorizer %s" `,
			strings.ToUpper(name), of.time.UTC().Format("Jan 2006"), of.version)
		if !strings.HasPrefix(string(page.content), ".nh\n"+title) || page.mode != 0o644 {
			t.Errorf("%s: %s (%o) begins with %.100q, want %q", p, page.name, page.mode, page.content, title)
		}
	}
}

// TestManualPagesHaveTheTextsOfCommands writes the pages and looks for text that Markdown would change.
func TestManualPagesHaveTheTextsOfCommands(t *testing.T) {
	r := &release{version: "v1.2.3", time: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}
	if err := r.writeManuals(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	checkManuals(t, r, platform{}, r.manuals)
	for page, texts := range map[string][]string{
		"node-authorizer":                 {"node-authorizer-can-i(1)", "0 allowed, 1 denied"},
		"node-authorizer-audit":           {"'audit*.log*'", "--keep-system-node-binding", "system:nodes"},
		"node-authorizer-config-validate": {"node-authorizer-config(1)"},
	} {
		i := slices.IndexFunc(r.manuals, func(e entry) bool { return e.name == manualFolder+page+".1" })
		if i < 0 {
			t.Errorf("there is no page %s", page)
			continue
		}
		for _, text := range texts {
			if content := strings.ReplaceAll(string(r.manuals[i].content), `\&`, ""); !strings.Contains(content, text) {
				t.Errorf("%s lacks %s:\n%s", page, text, content)
			}
		}
	}
}
