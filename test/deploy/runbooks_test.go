package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/docs/reference"
)

const runbooks = "alerts/"

// runbookSections returns the sections of a page by the anchor that GitHub gives their headings: in lower case,
// with hyphens for spaces, without other characters than letters, digits, hyphens and underscores, and
// numbered if repeated.
func runbookSections(page string) map[string]section {
	all := map[string]section{}
	var last string
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		heading := regexp.MustCompile(`^#+ +(.*)\n`).FindStringSubmatch(line)
		if code || heading == nil {
			if s := all[last]; last != "" {
				s.text += line
				all[last] = s
			}
			continue
		}
		anchor := regexp.MustCompile(`[^a-z0-9_\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchor = strings.ReplaceAll(anchor, " ", "-")
		if _, taken := all[anchor]; taken {
			anchor += "-1"
		}
		last = anchor
		all[anchor] = section{title: heading[1]}
	}
	return all
}

// section is a part of a page under a heading.
type section struct{ title, text string }

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	found := runbookSections("# A page\n## `Code`, and: more\n```sh\n# no heading\n```\n### A page\n#### 3. Rights in AWS\n")
	for _, want := range []string{"a-page", "code-and-more", "a-page-1", "3-rights-in-aws"} {
		if _, ok := found[want]; !ok {
			t.Errorf("no anchor %s in %v", want, found)
		}
	}
	if len(found) != 4 {
		t.Errorf("got %v", found)
	}
}

// Each alert has a section that says what to do, and each section is about an alert.
func TestEveryAlertHasARunbook(t *testing.T) {
	pages := map[string]string{}
	for _, page := range projectFiles(t, "docs/reference/"+runbooks+"*.md") {
		pages[filepath.Base(page)] = read(t, page)
	}
	alerts := map[string]bool{}
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			alerts[rule.Alert] = true
			address, ok := strings.CutPrefix(rule.Annotations["runbook_url"], reference.URL+runbooks)
			if !ok {
				t.Errorf("%s: runbook_url is %q, want %s…", rule.Alert, rule.Annotations["runbook_url"], reference.URL+runbooks)
				continue
			}
			page, anchor, _ := strings.Cut(address, "#")
			s, ok := runbookSections(pages[page])[anchor]
			if !ok || s.title != rule.Alert {
				t.Errorf("%s: #%s is the section %q", rule.Alert, anchor, s.title)
			}
			for _, part := range []string{
				"**What it means.** ", "**How to check.**\n\n```sh\n", "**What to do.** ", "**When to ignore it.** ",
			} {
				if !strings.Contains(s.text, part) {
					t.Errorf("%s: the section has no %s", rule.Alert, part)
				}
			}
		}
	}
	for _, page := range pages {
		for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(page, -1) {
			if !alerts[heading[1]] {
				t.Errorf("there is no alert %s, of which a section is", heading[1])
			}
		}
	}
	if len(alerts) == 0 {
		t.Error("there are no alerts")
	}
}
