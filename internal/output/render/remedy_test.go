package render

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/verdict"
)

func raw(t *testing.T, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func script(r verdict.Remedy) string {
	p := &Page{}
	p.Remedy(r, nil)
	return string(p.encode(false))
}

func TestRemedyIsAScript(t *testing.T) {
	role := verdict.Object{Kind: "Role", Namespace: "shop", Name: "reader"}
	binding := verdict.Object{Kind: "ClusterRoleBinding", Name: "admins"}
	const rbac = "rbac.authorization.k8s.io/v1"
	change := func(op verdict.Op, o verdict.Object, path string, value any) verdict.Change {
		c := verdict.Change{Of: verdict.OfObject, Op: op, APIVersion: rbac, Object: o, Path: path}
		if value != nil {
			c.Value = raw(t, value)
		}
		return c
	}
	for _, tc := range []struct {
		rule   string
		remedy verdict.Remedy
		want   string
	}{
		{"no change is a comment", verdict.Remedy{None: "nodes never\ndo this"}, "# nothing to change: nodes never\uFFFDdo this\n"},
		{
			"a whole object is a manifest",
			verdict.Remedy{
				Warning: "it is much",
				Changes: []verdict.Change{
					change(verdict.Add, role, "", map[string]any{"kind": "Role", "metadata": map[string]any{"name": "reader"}}),
				},
			},
			"# warning: it is much\n# role shop/reader\nkubectl apply -f - <<'EOF'\nkind: Role\nmetadata:\n  name: reader\nEOF\n",
		},
		{
			"a binding of a pod is created",
			verdict.Remedy{Changes: []verdict.Change{{
				Of: verdict.OfObject, Op: verdict.Add, APIVersion: "v1",
				Object: verdict.Object{Kind: "Binding", Namespace: "shop", Name: "api"},
				Value:  json.RawMessage(`{"kind":"Binding"}`),
			}}},
			"# binding shop/api\nkubectl create -f - <<'EOF'\nkind: Binding\nEOF\n",
		},
		{
			"fields of one object are one patch",
			verdict.Remedy{Changes: []verdict.Change{
				change(verdict.Test, binding, "/subjects/0", map[string]any{"kind": "User", "name": "o'hara"}),
				change(verdict.Remove, binding, "/subjects/0", nil),
				change(verdict.Replace, role, "/rules", []any{}),
			}},
			`kubectl patch clusterrolebinding.rbac.authorization.k8s.io admins --type=json -p '[{"op":"test","path":"/subjects/0",` +
				`"value":{"kind":"User","name":"o\u0027hara"}},{"op":"remove","path":"/subjects/0"}]'` + "\n" +
				"kubectl patch role.rbac.authorization.k8s.io reader --namespace=shop --type=json " +
				`-p '[{"op":"replace","path":"/rules","value":[]}]'` +
				"\n",
		},
		{
			"a deletion is a command",
			verdict.Remedy{Changes: []verdict.Change{change(verdict.Remove, binding, "", nil)}},
			"kubectl delete clusterrolebinding.rbac.authorization.k8s.io admins\n",
		},
		{
			"a feature gate is a flag of the API server",
			verdict.Remedy{Changes: []verdict.Change{{
				Of: verdict.OfFeatureGate, Op: verdict.Add,
				Object: verdict.Object{Kind: "FeatureGate", Name: "CSIVolumeHealth"}, Value: raw(t, true),
			}}},
			"# add to the flags of each kube-apiserver:\n# --feature-gates=CSIVolumeHealth=true\n",
		},
		{
			"a change of the request is a comment unless the caller renders it",
			verdict.Remedy{Changes: []verdict.Change{{
				Of: verdict.OfRequest, Op: verdict.Add, Object: verdict.Object{}, Path: "/request/namespace", Value: raw(t, "shop"),
			}}},
			`# change by hand: {"of":"Request","op":"add","path":"/request/namespace","value":"shop"}` + "\n",
		},
		{
			"a name that a terminal would act on is only a comment",
			verdict.Remedy{Changes: []verdict.Change{
				change(verdict.Remove, verdict.Object{Kind: "Role", Namespace: "shop", Name: "a\x1b[2Jb"}, "", nil),
			}},
			`# change by hand: {"of":"Object","op":"remove","apiVersion":"rbac.authorization.k8s.io/v1",` +
				`"object":{"kind":"Role","namespace":"shop","name":"a\u001b[2Jb"}}` + "\n",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := script(tc.remedy); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// hostile are names that a shell, a terminal, kubectl or YAML would read as something else.
var hostile = []string{
	"$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "a b", "\"", "\\", "a'b", "#a", "-rf", "--all", "*", "~", "!x",
	"a\nEOF\ntouch pwned\n",
	"EOF", "ünïcode", "😀'", "\u202egnp", "a\x1bb", "", "null", "yes", "- a", "{a: b}", "a: b", "%s", "=x", "&", "\u2028", "\x7f", "\t",
}

// TestHostileNamesReachKubectlAsTheyAre runs the scripts with a kubectl that prints its arguments
// and input. A command that gets another argument than the object's name is an error, and so is
// one that does anything else.
func TestHostileNamesReachKubectlAsTheyAre(t *testing.T) {
	const fake = `kubectl() { for a in "$@"; do printf '%s\0' "$a"; done; case "$*" in *'-f -'*) cat;; esac; printf '\0\0'; }` + "\n"
	run := func(t *testing.T, text string) []string {
		t.Helper()
		cmd := exec.Command("sh", "-eu", "-c", fake+text)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s\n%s", err, out, text)
		}
		if files, err := exec.Command("ls", "-A", cmd.Dir).Output(); err != nil || len(files) > 0 {
			t.Fatalf("the script made %q (%v):\n%s", files, err, text)
		}
		return strings.Split(strings.TrimSuffix(string(out), "\x00\x00"), "\x00")
	}
	for _, name := range hostile {
		o := verdict.Object{Kind: "Role", Namespace: name, Name: name}
		value := raw(t, map[string]any{"metadata": map[string]any{"name": name, name: []any{name}}})
		for _, c := range []verdict.Change{
			{Of: verdict.OfObject, Op: verdict.Remove, APIVersion: "v1", Object: o},
			{Of: verdict.OfObject, Op: verdict.Replace, APIVersion: "v1", Object: o, Path: "/a", Value: value},
			{Of: verdict.OfObject, Op: verdict.Add, APIVersion: "v1", Object: o, Value: value},
		} {
			text := script(verdict.Remedy{Changes: []verdict.Change{c}, Warning: name, None: name})
			if strings.ContainsAny(text, "\x1b\x7f\u202e\u2028") {
				t.Errorf("%q: the script has control characters: %q", name, text)
			}
			arguments := run(t, text)
			if !Exact(name) {
				if arguments[0] != "" {
					t.Errorf("%q: kubectl is called with %q", name, arguments)
				}
				continue
			}
			checkArguments(t, c, name, arguments)
		}
	}
}

func checkArguments(t *testing.T, c verdict.Change, name string, arguments []string) {
	t.Helper()
	target := []string{"role", name}
	if strings.HasPrefix(name, "-") {
		target = []string{"role/" + name}
	}
	if name != "" {
		target = append(target, "--namespace="+name)
	}
	var want []string
	switch {
	case c.Op == verdict.Remove:
		want = append([]string{"delete"}, target...)
	case c.Path != "":
		want = append(append([]string{"patch"}, target...), "--type=json", "-p")
	default:
		want = []string{"apply", "-f", "-"}
	}
	if len(arguments) < len(want) || strings.Join(arguments[:len(want)], "\x00") != strings.Join(want, "\x00") {
		t.Errorf("%q: kubectl is called with %q, want %q", name, arguments, want)
		return
	}
	if c.Op == verdict.Replace {
		var got []struct{ Value json.RawMessage }
		if err := json.Unmarshal([]byte(arguments[len(want)]), &got); err != nil || canonical(t, got[0].Value) != canonical(t, c.Value) {
			t.Errorf("%q: the patch is %s (%v)", name, arguments[len(want)], err)
		}
	}
	if c.Op == verdict.Add {
		if got := canonical(t, []byte(arguments[len(want)])); got != canonical(t, c.Value) {
			t.Errorf("%q: the manifest is %s, want %s", name, got, c.Value)
		}
	}
}

// canonical returns YAML or JSON as JSON with sorted keys.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(raw(t, value))
}
