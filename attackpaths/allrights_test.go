package attackpaths

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// servedRow is a line of testdata/discovery.txt or testdata/unlisted.txt.
type servedRow struct {
	group, resource, subresource string
	namespaced                   bool
	verbs                        []string
	minors                       string
}

func servedRows(t *testing.T, path string) []servedRow {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows []servedRow
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 {
			t.Fatalf("%s:%d: %d fields, want 4", path, i+1, len(fields))
		}
		r := servedRow{namespaced: fields[1] == "namespaced", verbs: strings.Split(fields[2], ","), minors: fields[3]}
		if strings.HasPrefix(fields[0], "/") {
			r.resource = fields[0]
		} else {
			var name string
			name, r.subresource, _ = strings.Cut(fields[0], "/")
			r.resource, r.group, _ = strings.Cut(name, ".")
		}
		rows = append(rows, r)
	}
	return rows
}

// servedCells are the verbs on all resources that API servers of some minor know.
func servedCells(t *testing.T) map[rightCell]servedRow {
	t.Helper()
	cells := map[rightCell]servedRow{}
	for _, path := range []string{"testdata/discovery.txt", "testdata/unlisted.txt"} {
		for _, r := range servedRows(t, path) {
			for _, verb := range r.verbs {
				cells[rightCell{r.group, r.resource, r.subresource, verb}] = r
			}
		}
	}
	return cells
}

// Each verb on each resource that API servers know is in one row, and each resource of a row is known.
func TestAllRightsAreClassified(t *testing.T) {
	rowsOf := map[rightCell]int{}
	known := servedCells(t)
	for _, g := range allRights {
		for _, r := range g.rows {
			if (r.nothing != "") == (r.open != "" || len(r.gives) > 0) {
				t.Errorf("%s %s of group %q: want that it gives nothing, or what it may give", r.verbs, r.resources, g.group)
			}
			matched := map[string]bool{}
			for _, c := range r.cells(g.group) {
				rowsOf[c]++
				row, served := known[c]
				if served && r.open != "" && r.clusterScoped == row.namespaced {
					t.Errorf("%s: the row says that cluster-scoped is %t", c, r.clusterScoped)
				}
				name := c.resource + "/" + c.subresource
				matched[name] = matched[name] || served
			}
			for name, served := range matched {
				if !served {
					t.Errorf("%s %s of group %q: no API server serves one of the verbs", r.verbs, strings.TrimSuffix(name, "/"), g.group)
				}
			}
		}
	}
	for c := range known {
		if n := rowsOf[c]; n != 1 {
			t.Errorf("%s: %d rows, want 1", c, n)
		}
	}
}

// withoutRight are the techniques that need no right which RBAC grants: what is held gives them.
var withoutRight = []Code{
	PodOnNode, PodTokenOnNode, TokenOfPodOnNode, SecretOnNode, PodToken, PodSecret, PodEscape, StealPods, ControlPlaneNode, Masters,
}

// A technique that uses a right is in the table.
func TestEachTechniqueIsInTheTable(t *testing.T) {
	given := map[Code]bool{}
	for _, g := range allRights {
		for _, r := range g.rows {
			for _, code := range r.gives {
				given[code] = true
				if rowOf(code) == 0 {
					t.Errorf("%s %s: no technique has the code %s", r.verbs, r.resources, code)
				}
			}
		}
	}
	for _, technique := range techniques {
		if !given[technique.Code] && !slices.Contains(withoutRight, technique.Code) {
			t.Errorf("no right gives %s", technique.Code)
		}
	}
}

// readElsewhere are rights that techniques use and that are not in the table of requests.
var readElsewhere = []string{"impersonate-on:* *.*"}

// The requests that techniques need are the rights that give something.
func TestTheTableOfRequestsIsThatOfRights(t *testing.T) {
	gives := map[rightCell]bool{}
	for _, g := range allRights {
		for _, r := range g.rows {
			for _, c := range r.cells(g.group) {
				gives[c] = len(r.gives) > 0
			}
		}
	}
	requested := map[rightCell]bool{}
	for r := range rightCount {
		k := requestKinds[r]
		verbs := k.verbs
		if r == execPods || r == attachPods {
			verbs = append([]string{"get"}, verbs...) // by a websocket, until 1.34
		}
		if r == impersonateNodeNames {
			k.subresource = "*"
		}
		for _, verb := range verbs {
			c := rightCell{k.group, k.resource, k.subresource, verb}
			requested[c] = true
			if !gives[c] {
				t.Errorf("%s: a technique needs it, and its row says that it gives nothing", c)
			}
		}
	}
	var unused []string
	for c, used := range gives {
		if used && !requested[c] && !slices.Contains(readElsewhere, c.String()) {
			unused = append(unused, c.String())
		}
	}
	slices.Sort(unused)
	if len(unused) > 0 {
		t.Errorf("no technique uses\n%q", unused)
	}
}

// The page of rights is made from the table. UPDATE_GOLDEN=1 writes it.
func TestRightsPage(t *testing.T) {
	const path = "../docs/rights.md"
	page := rightsPage(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page {
		t.Errorf("%s differs from the table: run UPDATE_GOLDEN=1 go test ./attackpaths -run TestRightsPage", path)
	}
}

func rightsPage(t *testing.T) string {
	t.Helper()
	intro, err := os.ReadFile("testdata/rights-intro.md")
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.Write(intro)
	known := servedCells(t)
	for _, g := range mergedGroups() {
		title := g.group
		if title == "" {
			title = "core"
		}
		if title == "*" {
			title = "Any group"
		}
		fmt.Fprintf(&page, "\n## %s\n\n| verbs | resources | gives |\n|---|---|---|\n", title)
		for _, r := range g.rows {
			verbs := map[string]bool{}
			for _, c := range r.cells(g.group) {
				if _, served := known[c]; served {
					verbs[c.verb] = true
				}
			}
			list := slices.DeleteFunc(strings.Fields(r.verbs), func(v string) bool { return !verbs[v] })
			fmt.Fprintf(&page, "| %s | %s | %s |\n", codeList(list), codeList(strings.Fields(r.resources)), r.outcome())
		}
	}
	return page.String()
}

// mergedGroups are the groups of the table by name, the core group first and any group last.
func mergedGroups() []rightsGroup {
	rows := map[string][]rightsRow{}
	for _, g := range allRights {
		rows[g.group] = append(rows[g.group], g.rows...)
	}
	var all []rightsGroup
	for _, group := range slices.Sorted(maps.Keys(rows)) {
		if group != "*" {
			all = append(all, rightsGroup{group, rows[group]})
		}
	}
	return append(all, rightsGroup{"*", rows["*"]})
}

func codeList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return strings.Join(quoted, ", ")
}

func (r *rightsRow) outcome() string {
	var parts []string
	for _, code := range r.gives {
		parts = append(parts, fmt.Sprintf("[%s](techniques.md#%s)", code, strings.ToLower(string(code))))
	}
	text := strings.Join(parts, ", ")
	switch {
	case r.nothing != "":
		return "nothing: " + r.nothing
	case r.open == "":
		return text
	case text != "":
		text += "; the rest is "
	}
	return text + "**not followed**: " + r.open
}

// TestTableOfRights: each right has one outcome, and is there once.
func TestTableOfRights(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range TableOfRights() {
		name := r.Group + " " + r.String()
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if gives := len(r.Gives) > 0 || r.NotFollowed != ""; gives == (r.Nothing != "") {
			t.Errorf("%s gives %v, is not followed because of %q, and gives nothing because of %q", name, r.Gives, r.NotFollowed, r.Nothing)
		}
	}
	if len(seen) < 500 {
		t.Errorf("the table has %d rights", len(seen))
	}
}
