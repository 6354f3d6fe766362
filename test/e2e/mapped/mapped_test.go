package mapped

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
)

// names are few, so that entries meet.
func names() []string { return []string{"node", "admin", "NODE", "ci"} }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// goodEntry is an entry that both can use, written in one of many ways.
func goodEntry(r *rand.Rand, field string) string {
	arn := "arn:aws:iam::" + pick(r, "111122223333", "444455556666") + ":" + pick(r, "role", "role", "user") + "/" + pick(r, "", "", "teams/a/") + pick(r, names()...)
	if r.IntN(20) == 0 {
		arn = strings.ToUpper(arn)
	}
	username := pick(r, "ann", "'12'", "system:node:{{EC2PrivateDNSName}}", `"{{SessionName}}"`, "a b", "!!str 7", "2026-01-01", ">-\n    folded\n    text")
	groups := pick(r, "", "[]", "null", "[a]", "[a, b]", "\n  - a\n  - 'b'", "\n  - a\n    - b", "[a, '', ~]", "&g%d [x, \"y\"]")
	name := pick(r, "username", "userName")
	lines := []string{
		pick(r, field, strings.ToUpper(field)) + ": " + arn,
		name + ": " + username,
		"groups: " + strings.ReplaceAll(groups, "%d", fmt.Sprint(r.IntN(1000))),
	}
	if r.IntN(4) == 0 {
		lines = append(lines, pick(r, "userid: AROA", "note: {a: [b]}", "group: [c]", "# groups: [d]"))
	}
	if r.IntN(6) == 0 {
		lines = append(lines, pick(r, name+": twice", "groups: [twice]"))
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return strings.Join(lines, "\n  ")
}

// goodList is a list that both can read, with anchors, aliases, merge keys, and
// documents after the first one.
func goodList(r *rand.Rand, field string) string {
	var text strings.Builder
	text.WriteString(pick(r, "", "", "---\n", "# mappings\n", "\ufeff"))
	anchors := 0
	for range r.IntN(6) {
		switch n := r.IntN(8); {
		case n == 0 && anchors > 0:
			fmt.Fprintf(&text, "- *e%d\n", r.IntN(anchors))
		case n == 1 && anchors > 0:
			fmt.Fprintf(&text, "- <<: *e%d\n  %s: arn:aws:iam::111122223333:role/%s\n", r.IntN(anchors), field, pick(r, names()...))
		default:
			fmt.Fprintf(&text, "- &e%d\n  %s\n", anchors, goodEntry(r, field))
			anchors++
		}
	}
	text.WriteString(pick(r, "", "", "", "---\n", "...\n---\n- "+field+": arn:aws:iam::111122223333:role/late\n  username: late\n"))
	if r.IntN(5) == 0 {
		return strings.ReplaceAll(text.String(), "\n", "\r\n")
	}
	return text.String()
}

// callers are all who can be mapped.
func callers() []string {
	var arns []string
	for _, account := range []string{"111122223333", "444455556666"} {
		for _, kind := range []string{"role", "user"} {
			for _, path := range []string{"", "teams/a/"} {
				for _, name := range append(names(), "late", "Ci") {
					arns = append(arns, "arn:aws:iam::"+account+":"+kind+"/"+path+name)
				}
			}
		}
	}
	return arns
}

// TestSameUsersAsTheReference puts random ConfigMaps that have no mistakes but those
// that do not matter to both, and asks both for every caller.
func TestSameUsersAsTheReference(t *testing.T) {
	reference := startReference(t)
	random := rand.New(rand.NewPCG(1, 2))
	mapped := 0
	for range 1500 {
		roles, users := goodList(random, "rolearn"), goodList(random, "userarn")
		reference.read(t, roles, users)
		ours, findings := iam.ParseConfigMap(map[string]string{"mapRoles": roles, "mapUsers": users}, "aws-auth", finding.Place{})
		for _, caller := range callers() {
			username, groups, ok := reference.find(caller)
			groups = slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return g == "" })
			mapping, found := ours.Find(caller, "", iam.Exact)
			if ok != found || username != mapping.Username || !slices.Equal(groups, mapping.Groups) {
				t.Fatalf("%s is %q %q %v in the reference, and %q %q %v here\nmapRoles:\n%s\nmapUsers:\n%s\nfindings: %v",
					caller, username, groups, ok, mapping.Username, mapping.Groups, found, roles, users, findings)
			}
			if ok {
				mapped++
			}
		}
	}
	if mapped < 1000 {
		t.Errorf("only %d callers were mapped: the test compares too little", mapped)
	}
}

// anyEntry is an entry in which anything can be wrong, about a role that no other
// entry is about.
func anyEntry(r *rand.Rand, arn string) string {
	if r.IntN(2) == 0 {
		return "rolearn: " + arn + "\n  username: ann"
	}
	arn = pick(r, arn, arn, arn, "'"+arn+" '", arn+"*", "!!binary YQ==")
	username := pick(r, "ann", "ann", "", "12", "yes", "{{SessionName}}", "'{{ SessionName }}'", "{{x", "'a{{b}}'", "|\n    line", "[a]", "' a'", "~")
	groups := pick(r, "[a]", "a", "[1]", "[a, 1.5, b]", "{a: b}", "[[a]]", "['{{x}}']", "[on]", "\n  - a\n - b", "[a")
	return "rolearn: " + arn + "\n  username: " + username + "\n  groups: " + groups
}

// TestNobodyIsAnybodyElseThanInTheReference puts random ConfigMaps with mistakes to
// both. Who is let in here is the same user there, unless a mistake made the
// reference forget the list; and who is let in there and not here has an entry that
// was reported as left out, or a list that was reported as broken.
func TestNobodyIsAnybodyElseThanInTheReference(t *testing.T) {
	reference := startReference(t)
	random := rand.New(rand.NewPCG(3, 4))
	leftOut, forgotten := 0, 0
	for range 3000 {
		var text strings.Builder
		arns := make([]string, 1+random.IntN(4))
		for i := range arns {
			arns[i] = fmt.Sprintf("arn:aws:iam::111122223333:role/node%d", i)
			text.WriteString("- " + anyEntry(random, arns[i]) + "\n")
		}
		reference.read(t, text.String(), "")
		ours, findings := iam.ParseConfigMap(map[string]string{"mapRoles": text.String()}, "aws-auth", finding.Place{})
		lost := true
		for _, arn := range arns {
			if _, _, ok := reference.find(arn); ok {
				lost = false
			}
		}
		for i, arn := range arns {
			username, groups, ok := reference.find(arn)
			mapping, found := ours.Find(arn, "", iam.Exact)
			fail := func(what string) {
				t.Fatalf("%s: %s is %q %q %v in the reference, and %q %q %v here\n%s\nfindings: %v",
					what, arn, username, groups, ok, mapping.Username, mapping.Groups, found, text.String(), findings)
			}
			switch {
			case found && ok && (username != mapping.Username || !slices.Equal(groups, mapping.Groups)):
				fail("another user")
			case found && !ok && !lost:
				fail("a user of our own")
			case found && !ok:
				forgotten++
			case ok && !found && !reported(findings, i, ours.Broken):
				fail("not reported")
			case ok && !found:
				leftOut++
			}
		}
	}
	if leftOut < 100 || forgotten < 10 {
		t.Errorf("%d entries were left out, and %d forgotten by the reference: the test compares too little", leftOut, forgotten)
	}
}

// reported reports whether an error was found in an entry, or its list is broken.
func reported(findings []finding.Finding, entry int, broken []string) bool {
	key := fmt.Sprintf("data.mapRoles[%d]", entry)
	return len(broken) > 0 || slices.ContainsFunc(findings, func(f finding.Finding) bool {
		return f.Severity == finding.Error && (f.Place.Key == key || strings.HasPrefix(f.Place.Key, key+"."))
	})
}
