package generate

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

func evaluate(t *testing.T, expression, user string) any {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("user", cel.StringType), ext.Strings())
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(map[string]any{"user": user})
	if err != nil {
		t.Fatal(err)
	}
	return value.Value()
}

func TestLiteral(t *testing.T) {
	for _, text := range []string{"", "a", `'`, `\`, `\'`, "\n\r\t\x00", "ü\u2028\U0001f600", `"] || true`} {
		if got := evaluate(t, celLiteral(text), ""); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestAccounts(t *testing.T) {
	users, namespaces := []string{"system:serviceaccount:a:b"}, []string{"c"}
	for _, tc := range []struct {
		rule, expression, user string
		want                   bool
	}{
		{"the user", celAccounts("user", users, nil), "system:serviceaccount:a:b", true},
		{"another", celAccounts("user", users, nil), "system:serviceaccount:a:c", false},
		{"of the namespace", celAccounts("user", nil, namespaces), "system:serviceaccount:c:x", true},
		{"of a namespace that begins alike", celAccounts("user", nil, namespaces), "system:serviceaccount:cc:x", false},
		{"no account", celAccounts("user", nil, namespaces), "a:b:c", false},
		{"either", celAccounts("user", users, namespaces), "system:serviceaccount:c:x", true},
		{"or", celAccounts("user", users, namespaces), "system:serviceaccount:a:b", true},
		{"none", celAccounts("user", users, namespaces), "ada", false},
	} {
		if got := evaluate(t, tc.expression, tc.user); got != tc.want {
			t.Errorf("%s: %v", tc.rule, got)
		}
	}
}
