package deploy

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// platformsPage is the text of all pages about platforms.
func platformsPage(t *testing.T) (text string) {
	for _, page := range projectFiles(t, "docs/reference/platforms/*.md") {
		text += read(t, page)
	}
	return text
}

// link is a Markdown link to a section of the pages about platforms.
var link = regexp.MustCompile(`\[([^]]+)\]\([a-z]*(?:\.md)?#([^)]+)\)`)

// The table of all platforms and the sections about each have the same platforms and features, and
// say yes, partly or no in the same places.
func TestPlatforms(t *testing.T) {
	page := platformsPage(t)
	_, table, found := strings.Cut(page, "\n## Where it works\n")
	if !found {
		t.Fatal("the page has no table of all platforms")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	rows := tableRows(table)
	if len(rows) < 2 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	sections := platformSections(page)
	features := linked(t, page, rows[0][1:])
	for _, row := range rows[1:] {
		name := linked(t, page, row[:1])[0]
		section, ok := sections[name]
		if !ok {
			t.Errorf("%s has no section with a table", name)
			continue
		}
		delete(sections, name)
		if len(row) != len(features)+1 || len(section) != len(features) {
			t.Errorf("%s has %d features in the table and %d in its section, want %d", name, len(row)-1, len(section), len(features))
			continue
		}
		for i, feature := range features {
			if section[i][0] != feature {
				t.Errorf("%s: row %d is about %s, want %s", name, i+1, section[i][0], feature)
			}
			short, long := firstWord(row[i+1]), firstWord(section[i][1])
			if short != long || !slices.Contains([]string{"yes", "partly", "no"}, short) {
				t.Errorf("%s, %s: the table says %q, the section %q", name, feature, row[i+1], section[i][1])
			}
		}
	}
	for name := range sections {
		t.Errorf("%s is not in the table", name)
	}
}

// Each row of a platform that works only by documentation or by tests says so.
func TestPlatformsSayHowItIsKnown(t *testing.T) {
	for name, rows := range platformSections(platformsPage(t)) {
		for _, row := range rows {
			known := regexp.MustCompile(`(?i)\b(tested|documented)\b`).MatchString(row[1])
			if !known && firstWord(row[1]) == "yes" {
				t.Errorf("%s, %s: neither tested nor documented: %s", name, row[0], row[1])
			}
		}
	}
}

// firstWord returns the first word of a cell.
func firstWord(cell string) string { return regexp.MustCompile(`^\w*`).FindString(cell) }

// linked returns the texts of cells, each a link to a section that is there.
func linked(t *testing.T, page string, cells []string) (texts []string) {
	t.Helper()
	for _, cell := range cells {
		m := link.FindStringSubmatch(cell)
		if m == nil {
			t.Fatalf("%q is no link to a section", cell)
		}
		if !slices.Contains(anchors(page), m[2]) {
			t.Errorf("docs/reference/platforms has no section %s", m[2])
		}
		texts = append(texts, m[1])
	}
	return texts
}

// platformSections returns the rows of the table with which the section of a platform begins.
func platformSections(page string) map[string][][]string {
	sections := map[string][][]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if rows := tableRows(text); strings.HasPrefix(strings.TrimSpace(text), "|") {
			sections[name] = rows[1:] // without the empty head
		}
	}
	return sections
}

// tableRows returns the cells of a table, without the line under its head.
func tableRows(text string) (rows [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		var row []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows
}
