package main

import (
	"fmt"
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
func checkManuals(t *testing.T, p platform, pages []entry) {
	t.Helper()
	const fewest = 15
	if len(pages) < fewest {
		t.Errorf("%s: the archive has only %d manual pages", p, len(pages))
	}
	for _, page := range pages {
		name := strings.TrimSuffix(strings.TrimPrefix(page.name, manualFolder), ".1")
		title := fmt.Sprintf(`.TH "%s" "1" "%s" "node-authorizer %s" `,
			strings.ToUpper(name), built.time.Format(time.DateOnly), built.version)
		if !strings.HasPrefix(string(page.content), title) || page.mode != 0o644 {
			t.Errorf("%s: %s (%o) begins with %.100q, want %q", p, page.name, page.mode, page.content, title)
		}
	}
}
