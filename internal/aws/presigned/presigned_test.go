package presigned_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/presigned"
)

// rules are rules for short queries.
var rules = presigned.Rules{Required: []string{presigned.Action, presigned.Version}, Optional: []string{presigned.Expires}}

func TestQueries(t *testing.T) {
	exact := rules
	exact.Exact = true
	for _, test := range []struct {
		rule, query string
		rules       presigned.Rules
		want        *presigned.Problem
	}{
		{"all required parameters", "Action=a&Version=b", rules, nil},
		{"an optional parameter, in another order", "X-Amz-Expires=60&Version=b&Action=a", rules, nil},
		{"names in another case", "ACTION=a&version=b", rules, nil},
		{
			"names in another case with exact rules", "ACTION=a&Version=b", exact,
			&presigned.Problem{Kind: presigned.NotAllowed, Parameter: "action", Name: "ACTION"},
		},
		{"names as AWS writes them", "Action=a&Version=b&X-Amz-Expires=1", exact, nil},
		{"no equals sign", "Action=a&Version", rules, &presigned.Problem{Kind: presigned.Malformed, Position: 2}},
		{"an encoded name", "%41ction=a&Version=b", rules, &presigned.Problem{Kind: presigned.Malformed, Position: 1}},
		{"a plus sign", "Action=a+b", rules, &presigned.Problem{Kind: presigned.Malformed, Position: 1}},
		{"an encoded zero byte", "Action=a%00", rules, &presigned.Problem{Kind: presigned.Malformed, Position: 1}},
		{"a parameter twice", "Action=a&Action=a", rules, &presigned.Problem{Kind: presigned.Twice, Parameter: "action", Name: "Action"}},
		{
			"a parameter in two cases", "Action=a&action=a", rules,
			&presigned.Problem{Kind: presigned.InTwoCases, Parameter: "action", Name: "action", Earlier: "Action"},
		},
		{"an empty value", "Action=", rules, &presigned.Problem{Kind: presigned.Empty, Parameter: "action", Name: "Action"}},
		{
			"another parameter", "Action=a&Version=b&RoleArn=c", rules,
			&presigned.Problem{Kind: presigned.NotAllowed, Parameter: "rolearn", Name: "RoleArn"},
		},
		{"a missing parameter", "Action=a", rules, &presigned.Problem{Kind: presigned.Missing, Parameter: "version", Name: "Version"}},
		{"nothing", "", rules, &presigned.Problem{Kind: presigned.Missing, Parameter: "action", Name: "Action"}},
	} {
		query, problem := presigned.Parse(test.query, test.rules)
		switch {
		case (problem == nil) != (test.want == nil), problem != nil && *problem != *test.want:
			t.Errorf("%s: got %+v, want %+v", test.rule, problem, test.want)
		case problem == nil && query.Encode() != test.query:
			t.Errorf("%s: %s is written as %s", test.rule, test.query, query.Encode())
		}
	}
}

func TestCheckCall(t *testing.T) {
	const good = "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256"
	all := presigned.Rules{Required: []string{presigned.Action, presigned.Version, presigned.Algorithm}}
	for _, test := range []struct{ rule, from, to, wrong, value string }{
		{"a valid query", "", "", "", ""},
		{"another action", "GetCallerIdentity", "AssumeRole", presigned.Action, "AssumeRole"},
		{"the action in another case", "GetCallerIdentity", "getcalleridentity", presigned.Action, "getcalleridentity"},
		{"another version", "2011-06-15", "2012-01-01", presigned.Version, "2012-01-01"},
		{"another algorithm", "HMAC", "ECDSA", presigned.Algorithm, "AWS4-ECDSA-SHA256"},
	} {
		query, problem := presigned.Parse(strings.Replace(good, test.from, test.to, 1), all)
		if problem != nil {
			t.Fatal(problem)
		}
		problem = query.CheckCall()
		if (problem == nil) != (test.wrong == "") ||
			problem != nil && (problem.Kind != presigned.WrongValue || problem.Parameter != test.wrong || problem.Value != test.value) {
			t.Errorf("%s: got %+v", test.rule, problem)
		}
	}
	if problem := (presigned.Query{}).CheckCall(); problem == nil {
		t.Error("a query without an action is accepted")
	}
}

// FuzzParse checks that other parsers read an accepted query in the same way, and that
// its encoding is accepted again.
func FuzzParse(f *testing.F) {
	for _, query := range []string{
		"Action=a&Version=b", "Action=%2Fa%3D&version=b", "Action=a&action=b&Version=c", "Action=a;Version=b",
		"%41ction=a&Version=+",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, problem := presigned.Parse(text, rules)
		if problem != nil {
			return
		}
		values, err := url.ParseQuery(text)
		if err != nil || len(values) != len(query) {
			t.Fatalf("%q is read as %v, %v", text, values, err)
		}
		for _, p := range query {
			if got := values[p.Name]; len(got) != 1 || got[0] != p.Value {
				t.Errorf("%s of %q is %q, and %q for others", p.Name, text, p.Value, got)
			}
		}
		if again, problem := presigned.Parse(query.Encode(), rules); problem != nil || again.Encode() != query.Encode() {
			t.Errorf("%q is written as %q, which is %+v", text, query.Encode(), problem)
		}
	})
}
