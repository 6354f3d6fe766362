package mapped

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// names are few, so that several entries have the same name.
func names() []string { return []string{"node", "admin", "NODE", "ci"} }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// goodEntry returns a random entry that both accept. Field and name are the spellings of
// the fields of the ARN and the username.
func goodEntry(r *rand.Rand, field, name string) string {
	arn := "arn:aws:iam::" + pick(r, "111122223333",
		"444455556666") + ":" + pick(r, "role", "role", "user") + "/" + pick(r, "", "", "teams/a/") + pick(r, names()...)
	if r.IntN(20) == 0 {
		arn = strings.ToUpper(arn)
	}
	username := pick(r, "ann", "'12'", "system:node:{{EC2PrivateDNSName}}", `"{{SessionName}}"`, "a b", "!!str 7", "2026-01-01",
		">-\n    folded\n    text")
	groups := pick(r, "", "[]", "null", "[a]", "[a, b]", "\n  - a\n  - 'b'", "\n  - a\n    - b", "[a, '', ~]", "&g%d [x, \"y\"]")
	lines := []string{
		field + ": " + arn,
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

// goodList returns a list that both accept, with anchors, aliases, merge keys, and
// further documents.
func goodList(r *rand.Rand, field string) string {
	var text strings.Builder
	text.WriteString(pick(r, "", "", "---\n", "# mappings\n", "\ufeff"))
	// A field that is merged in one spelling and written in another is refused here.
	field, name := pick(r, field, field, strings.ToUpper(field)), pick(r, "username", "userName")
	anchors := 0
	for range r.IntN(6) {
		switch n := r.IntN(8); {
		case n == 0 && anchors > 0:
			fmt.Fprintf(&text, "- *e%d\n", r.IntN(anchors))
		case n == 1 && anchors > 0:
			fmt.Fprintf(&text, "- <<: *e%d\n  %s: arn:aws:iam::111122223333:role/%s\n", r.IntN(anchors), field, pick(r, names()...))
		default:
			fmt.Fprintf(&text, "- &e%d\n  %s\n", anchors, goodEntry(r, field, name))
			anchors++
		}
	}
	text.WriteString(pick(r, "", "", "", "---\n", "...\n---\n- "+field+": arn:aws:iam::111122223333:role/late\n  username: late\n"))
	if r.IntN(5) == 0 {
		return strings.ReplaceAll(text.String(), "\n", "\r\n")
	}
	return text.String()
}

// callers are all possible callers.
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

// TestSameUsersAsTheReference compares random ConfigMaps without relevant mistakes, for
// every caller.
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

// anyEntry returns an entry with arbitrary mistakes, for a role without another entry.
func anyEntry(r *rand.Rand, arn string) string {
	if r.IntN(2) == 0 {
		return "rolearn: " + arn + "\n  username: ann"
	}
	arn = pick(r, arn, arn, arn, "'"+arn+" '", arn+"*", "!!binary YQ==")
	username := pick(r, "ann", "ann", "", "12", "yes", "{{SessionName}}", "'{{ SessionName }}'", "{{x", "'a{{b}}'", "|\n    line", "[a]",
		"' a'", "~")
	groups := pick(r, "[a]", "a", "[1]", "[a, 1.5, b]", "{a: b}", "[[a]]", "['{{x}}']", "[on]", "\n  - a\n - b", "[a")
	return "rolearn: " + arn + "\n  username: " + username + "\n  groups: " + groups
}

// TestNoOtherUsersThanInTheReference compares random ConfigMaps with mistakes. A caller
// that we authenticate is the same user in the reference, unless a mistake made the
// reference drop the list. A caller that only the reference authenticates has an entry or
// a list that we reported as unusable.
func TestNoOtherUsersThanInTheReference(t *testing.T) {
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
			found = found && !mapping.Unusable
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

// brokenEntry returns an entry for a role with a mistake that does not make the reference
// drop the list.
func brokenEntry(r *rand.Rand, field, arn string) string {
	groups := pick(r, "[dev]", "[]", "[system:masters]", "[view, edit]")
	arnLine, usernameLine, groupsLine := field+": "+arn, "username: dev", "groups: "+groups
	switch r.IntN(14) {
	case 0:
		usernameLine = "username: " + pick(r, "12", "yes", "[a]", "{a: b}", "''", "~", "' dev'", "'dev '", "'system:node:'",
			"!!binary ZGV2")
	case 1:
		usernameLine = "username: " + pick(r, "'{{ SessionName }}'", "'{{x}}'", "'a}}'", "'{{'", "|\n    dev")
	case 2:
		usernameLine = "note: none"
	case 3:
		groupsLine = "groups: " + pick(r, "view", "'a,b'", "12", "{a: b}", "true", "!!binary dmlldw==")
	case 4:
		groupsLine = "groups: " + pick(r, "[1]", "[a, 1.5]", "[on]", "[[a]]", "[{a: b}]", "['{{x}}']", "['view ']", "[~, 1]")
	case 5:
		groupsLine += "\n  " + pick(r, "Groups", "GROUPS", "group\u017f") + ": " + pick(r, "[]", "[system:masters]", "view")
	case 6:
		usernameLine += "\n  " + pick(r, "Username", "USERNAME", "u\u017fername") + ": admin"
	case 7:
		arnLine += "\n  " + pick(r, strings.ToUpper(field), strings.ToUpper(field[:1])+field[1:]) + ": " + anARN(r)
	case 8:
		arnLine = "<<: {" + pick(r, "groups", "Groups") + ": [view]}\n  " + arnLine
		groupsLine = strings.Replace(groupsLine, "groups", pick(r, "groups", "Groups", "GROUPS"), 1)
	case 9:
		arnLine = "<<: [{groups: [view]}, {" + pick(r, "Groups", "groups") + ": [edit], userName: other}]\n  " + arnLine
		groupsLine = "note: none"
	case 10:
		arnLine += "\n  <<: {" + pick(r, field, strings.ToUpper(field)) + ": " + anARN(r) + "}"
	case 11:
		arnLine = "<<: {" + pick(r, field, strings.ToUpper(field)) + ": " + anARN(r) + "}\n  " + arnLine
	case 12:
		arnLine = field + ": " + pick(r, "'"+arn+" '", "!!binary "+base64.StdEncoding.EncodeToString([]byte(arn)), "["+arn+"]", arn+"*")
	case 13:
		arnLine = pick(r, "userarn", "rolearn", "arn") + ": " + arn
	}
	lines := []string{arnLine, usernameLine, groupsLine}
	if !strings.HasPrefix(arnLine, "<<") && !strings.Contains(arnLine, "\n  <<") {
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	}
	return strings.Join(lines, "\n  ")
}

// anARN returns one of few roles, so that several entries have the same one.
func anARN(r *rand.Rand) string {
	return "arn:aws:iam::111122223333:" + pick(r, "role/node", "role/admin", "role/NODE")
}

// TestNoMoreRightsThanInTheReference compares random ConfigMaps with good and bad entries
// for the same roles, in both lists, with the roles' account mapped too. A caller that we
// authenticate is the same user in the reference.
func TestNoMoreRightsThanInTheReference(t *testing.T) {
	reference := startReference(t)
	random := rand.New(rand.NewPCG(5, 6))
	same, refused, accounts := 0, 0, 0
	for range 6000 {
		list := func(field string) string {
			var text strings.Builder
			for range random.IntN(4) {
				if random.IntN(3) == 0 {
					text.WriteString("- " + brokenEntry(random, field, anARN(random)) + "\n")
				} else {
					fmt.Fprintf(&text, "- %s: %s\n  username: %s\n  groups: [%s]\n", field, anARN(random), pick(random, "ann", "bob"),
						pick(random, "", "a", "system:masters"))
				}
			}
			return text.String()
		}
		roles, users := list("rolearn"), list("userarn")
		reference.read(t, roles, users, "111122223333")
		ours, findings := iam.ParseConfigMap(map[string]string{"mapRoles": roles, "mapUsers": users, "mapAccounts": "- 111122223333"},
			"aws-auth", finding.Place{})
		if len(ours.Broken) > 0 {
			continue
		}
		for _, caller := range []string{"arn:aws:iam::111122223333:role/node", "arn:aws:iam::111122223333:role/admin"} {
			username, groups, ok := reference.find(caller)
			mapping, found := ours.Find(caller, "111122223333", iam.Exact)
			groups = slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return g == "" })
			fail := func(what string) {
				t.Fatalf("%s: %s is %q %q %v in the reference, and %+v here\nmapRoles:\n%s\nmapUsers:\n%s\nfindings: %v",
					what, caller, username, groups, ok, mapping, roles, users, findings)
			}
			switch {
			case !found:
				fail("not even the account")
			case mapping.Unusable:
				refused++
			case mapping.Kind == iam.AccountMapping && ok:
				fail("the account counts here alone")
			case mapping.Kind == iam.AccountMapping:
				accounts++
			case !ok || username != mapping.Username || !slices.Equal(groups, mapping.Groups):
				fail("another user")
			default:
				same++
			}
		}
	}
	if same < 1000 || refused < 1000 || accounts < 100 {
		t.Errorf("%d the same, %d refused, %d by their account: the test compares too little", same, refused, accounts)
	}
}
