package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const techniquesHead = "apiVersion: " + APIVersion + "\nkind: " + TechniquesKind + "\ntechniques:\n"

// builtIn has the codes that no technique in a file may have.
var builtIn = map[string]string{"PodExec": "a built-in technique"}

// row is a technique without mistakes; more follows its fields.
func row(code string, more ...string) string {
	return fmt.Sprintf(`- code: %s
  summary: does something
  allowedBy: [{verbs: [create], apiGroup: example.com, resource: widgets}]
  gives: [{kind: ClusterAdmin}]
  remedy: remove the rule
%s
`, code, strings.Join(more, "\n"))
}

func TestEveryFieldOfATechniqueIsRead(t *testing.T) {
	got, err := ParseTechniques([]byte(techniquesHead+`
- code: WidgetStore
  summary: a widget runs anything
  attack: T1098.006
  allowedBy:
  - {verbs: [create, update], apiGroup: example.com, resource: widgets, subresource: scale, namespace: shop, name: main}
  - {verbs: [get], apiGroup: "", resource: secrets, scope: Namespaced}
  with:
  - {verbs: ["impersonate:user-info"], apiGroup: example.com, resource: stores, scope: Cluster}
  - {verbs: [get], apiGroup: "", resource: secrets, namespace: "{namespace}"}
  gives:
  - {kind: ServiceAccount, namespace: "{namespace}", name: "*"}
  - {kind: Secret, namespace: "*", name: key-*}
  - {kind: Node, name: n1}
  - {kind: Namespace, name: "{namespace}"}
  - {kind: User, name: "system:kube-scheduler"}
  - {kind: Group, name: "system:masters"}
  - {kind: ClusterAdmin}
  dependsOn: whether it runs
  remedy: remove the rule
`), builtIn)
	if err != nil {
		t.Fatal(err)
	}
	want := &Techniques{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: TechniquesKind},
		Techniques: []Technique{{
			Code: "WidgetStore", Summary: "a widget runs anything", Attack: "T1098.006",
			AllowedBy: []TechniqueRequest{
				{
					Verbs: []string{"create", "update"}, APIGroup: "example.com", Resource: "widgets", Subresource: "scale",
					Namespace: "shop", Name: "main",
				},
				{Verbs: []string{"get"}, Resource: "secrets", Scope: NamespacedScope},
			},
			With: []TechniqueRequest{
				{Verbs: []string{"impersonate:user-info"}, APIGroup: "example.com", Resource: "stores", Scope: ClusterScope},
				{Verbs: []string{"get"}, Resource: "secrets", Namespace: SameNamespace},
			},
			Gives: []TechniqueHolding{
				{HoldingServiceAccount, SameNamespace, "*"},
				{HoldingSecret, "*", "key-*"},
				{HoldingNode, "", "n1"},
				{HoldingNamespace, "", SameNamespace},
				{HoldingUser, "", "system:kube-scheduler"},
				{HoldingGroup, "", "system:masters"},
				{Kind: HoldingClusterAdmin},
			},
			DependsOn: "whether it runs", Remedy: "remove the rule",
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestMistakesInTechniques compares the problems in testdata/techniques/FILE with FILE.golden.
func TestMistakesInTechniques(t *testing.T) {
	for _, file := range mistakenTechniques(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			techniques, err := ParseTechniques(text, builtIn)
			if problems := (Problems{}); techniques != nil || !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("got %v, error %v; want problems", techniques, err)
			}
			compareGolden(t, file+".golden", err.Error()+"\n")
		})
	}
}

func mistakenTechniques(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"testdata/techniques/*.yaml", "testdata/techniques/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// Files, lists and texts are bounded.
func TestTechniquesAreBounded(t *testing.T) {
	many := func(n int, item string) string { return "[" + strings.Repeat(item+", ", n-1) + item + "]" }
	request := "{verbs: [get], apiGroup: '', resource: secrets}"
	rows := ""
	for i := range maxTechniques + 1 {
		rows += row(fmt.Sprintf("Row%d", i))
	}
	row := func(more string) string { return techniquesHead + row("Row", more) }
	for rule, c := range map[string]struct{ file, want string }{
		"the file":   {techniquesHead + strings.Repeat("#\n", MaxTechniquesFile/2), "the file is larger than 1 MiB: divide it"},
		"techniques": {techniquesHead + rows, "techniques: 101 techniques, want at most 100"},
		"requests":   {row("  with: " + many(17, request)), "with: 17 entries, want at most 16: divide the technique"},
		"a list":     {row("  with: " + many(16, request)), ""},
		"the text":   {row("  dependsOn: " + strings.Repeat("a", 1001)), "dependsOn: 1001 bytes, want at most 1000"},
		"the code": {
			strings.Replace(row(""), "Row", "R"+strings.Repeat("o", 63), 1),
			"code: want a name in CamelCase of 3 to 63 letters and digits",
		},
		"what is odd": {row(`  dependsOn: "a\u2028b"`), `dependsOn: want one line of printable text, got "a\u2028b"`},
		"not decoded": {row("  dependsOn: \"a\ufffdb\""), "dependsOn: want one line of printable text"},
	} {
		_, err := ParseTechniques([]byte(c.file), nil)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", rule, err, c.want)
		}
	}
}

// FuzzParseTechniques checks that an accepted file gives the same techniques when it is read from
// JSON.
func FuzzParseTechniques(f *testing.F) {
	examples, err := filepath.Glob("../../../examples/techniques/*.yaml")
	if err != nil || len(examples) == 0 {
		f.Fatal("no examples", err)
	}
	for _, file := range append(examples, mistakenTechniques(f)...) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(techniquesHead + row("Row")))
	f.Fuzz(func(t *testing.T, file []byte) {
		techniques, err := ParseTechniques(file, builtIn)
		if err != nil {
			if problems := (Problems{}); !errors.As(err, &problems) || len(problems) == 0 || techniques != nil {
				t.Fatalf("the error is not problems: %v", err)
			}
			return
		}
		text, err := json.Marshal(techniques)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseTechniques(text, builtIn)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(again, techniques) {
			t.Errorf("got %+v\nthen %+v", techniques, again)
		}
	})
}

// TestTheDocumentedTechniquesAreValid: the example in docs/reference/techniques/own.md is accepted.
func TestTheDocumentedTechniquesAreValid(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/techniques/own.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	if _, err := ParseTechniques([]byte(example), builtIn); err != nil {
		t.Error(err)
	}
}

// TestEveryFieldOfATechniqueIsDocumented: docs/reference/techniques/own.md explains each field.
func TestEveryFieldOfATechniqueIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/techniques/own.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{
		reflect.TypeFor[Technique](), reflect.TypeFor[TechniqueRequest](), reflect.TypeFor[TechniqueHolding](),
	} {
		for _, name := range fieldNames(of) {
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("%s: %s is not documented", of.Name(), name)
			}
		}
	}
}
