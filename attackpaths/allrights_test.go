package attackpaths

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/docs/reference"
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

// servedRights are the verbs on all resources that API servers of some minor know.
func servedRights(t *testing.T) map[string]servedRow {
	t.Helper()
	all := map[string]servedRow{}
	for _, path := range []string{"testdata/discovery.txt", "testdata/unlisted.txt"} {
		for _, r := range servedRows(t, path) {
			for _, verb := range r.verbs {
				all[TableRight{Group: r.group, Resource: r.resource, Subresource: r.subresource, Verb: verb}.String()] = r
			}
		}
	}
	return all
}

// Each verb on each resource that API servers know is in the table, at most one row is about it, and each resource of a
// row is known.
func TestAllRightsAreClassified(t *testing.T) {
	rowsOf, known, listed, nothing := map[string]int{}, servedRights(t), map[string]bool{}, map[string]string{}
	for _, row := range rightsRows {
		if (row.nothing != "") == (row.open != "") {
			t.Errorf("%s %s of group %q: want that it gives nothing, or what it may give", row.verbs, row.resources, row.group)
		}
		matched := map[string]bool{}
		cells := rightsList{known: map[string]*TableRight{}}
		for _, c := range cells.at(row.group, row.resources, row.verbs) {
			rowsOf[c.String()]++
			nothing[c.String()] = row.nothing
			at, served := known[c.String()]
			if served && row.open != "" && row.clusterScoped == at.namespaced {
				t.Errorf("%s: the row says that cluster-scoped is %t", c, row.clusterScoped)
			}
			name := c.Resource + "/" + c.Subresource
			matched[name] = matched[name] || served
		}
		for name, served := range matched {
			if !served {
				t.Errorf("%s %s of group %q: no API server serves one of the verbs", row.verbs, strings.TrimSuffix(name, "/"), row.group)
			}
		}
	}
	for _, r := range TableOfRights() {
		listed[r.String()] = true
		if says := nothing[r.String()]; says != "" && r.Nothing != says {
			t.Errorf("%s gives something, and its row says that it gives nothing: %s", r, says)
		}
	}
	for c := range known {
		if n := rowsOf[c]; n > 1 || !listed[c] {
			t.Errorf("%s: %d rows, and it is %t that the table has it", c, n, listed[c])
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
	for _, r := range TableOfRights() {
		for _, code := range r.Gives {
			given[code] = true
		}
	}
	for _, technique := range techniques {
		if !given[technique.Code] && !slices.Contains(withoutRight, technique.Code) {
			t.Errorf("no right gives %s", technique.Code)
		}
	}
}

// The requests of the table of rights, also those that create an object by its name, give something, and no other rights do.
func TestTheTableOfRequestsIsThatOfRights(t *testing.T) {
	requested := map[string]bool{"impersonate-on:* *.*": true}
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
			requested[TableRight{Group: k.group, Resource: k.resource, Subresource: k.subresource, Verb: verb}.String()] = true
		}
	}
	for _, r := range TableOfRights() {
		if gives := len(r.Gives) > 0; gives != requested[r.String()] {
			t.Errorf("%s: that a technique uses it is %t, and that it gives something is %t", r, requested[r.String()], gives)
		}
		delete(requested, r.String())
	}
	if len(requested) > 0 {
		t.Errorf("the table of all rights lacks %v", slices.Sorted(maps.Keys(requested)))
	}
}

// The page of rights is made from the table. UPDATE_GOLDEN=1 writes it.
func TestRightsPage(t *testing.T) {
	const path = "../docs/reference/rights.md"
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
	known, byGroup := servedRights(t), map[string][]TableRight{}
	for _, r := range TableOfRights() {
		if _, served := known[r.String()]; served {
			byGroup[r.Group] = append(byGroup[r.Group], r)
		}
	}
	groups := slices.DeleteFunc(slices.Sorted(maps.Keys(byGroup)), func(group string) bool { return group == "*" })
	for _, group := range append(groups, "*") {
		title := map[string]string{"": "core", "*": "Any group"}[group]
		fmt.Fprintf(&page, "\n## %s\n\n| verbs | resources | gives |\n|---|---|---|\n", cmp.Or(title, group))
		page.WriteString(rightsOfGroup(byGroup[group]))
	}
	return page.String()
}

// rightsOfGroup has a line for all resources with the same outcome of the same verbs. Resources are sorted, each with its
// subresources.
func rightsOfGroup(rights []TableRight) string {
	order := strings.Fields(every)
	place := func(verb string) int {
		if i := slices.Index(order, verb); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(rights, func(a, b TableRight) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Subresource, b.Subresource),
			cmp.Compare(place(a.Verb), place(b.Verb)), strings.Compare(a.Verb, b.Verb))
	})
	verbs, resources := map[[2]string][]string{}, map[string][]string{}
	var of [][2]string // a resource and an outcome
	for _, r := range rights {
		k := [2]string{strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/"), outcomeText(r)}
		if verbs[k] == nil {
			of = append(of, k)
		}
		verbs[k] = append(verbs[k], r.Verb)
	}
	var lines []string
	line := func(k [2]string) string { return codeList(verbs[k]) + " | %s | " + k[1] }
	for _, k := range of {
		if resources[line(k)] == nil {
			lines = append(lines, line(k))
		}
		resources[line(k)] = append(resources[line(k)], k[0])
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString("| " + strings.Replace(l, "%s", codeList(resources[l]), 1) + " |\n")
	}
	return text.String()
}

func codeList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return strings.Join(quoted, ", ")
}

func outcomeText(r TableRight) string {
	var parts []string
	for _, code := range r.Gives {
		link := strings.TrimPrefix(reference.Link(reference.Technique, string(code)), reference.URL)
		parts = append(parts, fmt.Sprintf("[%s](%s)", code, link))
	}
	text := strings.Join(parts, ", ")
	switch {
	case r.Nothing != "":
		return "nothing: " + r.Nothing
	case r.NotFollowed == "":
		return text
	case text != "":
		text += "; the rest is "
	}
	return text + "**not followed**: " + r.NotFollowed
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
