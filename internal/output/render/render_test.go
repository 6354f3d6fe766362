package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// sample is a result with every form.
type sample struct {
	Name string       `json:"name"`
	Path verdict.Path `json:"path"`
}

func (s sample) DocumentKind() string { return "Sample" }

func (s sample) Text(p *Page) {
	p.Section("Sample %s", s.Name)
	p.Fields(Field{"decision", Good.In("Allow")}, Field{"empty", ""}, Field{"by", "Node"})
	p.Path(2, s.Path)
	if p.Wide() {
		p.Table(2, []string{"KIND", "NAME"}, [][]string{{"Secret", "db"}, {"ConfigMap", Faint.In("app")}})
	}
}

func (s sample) Drawing() *Graph {
	g := NewGraph(s.Name)
	g.Path(s.Path)
	g.Path(s.Path)
	return g
}

func newSample() sample {
	secret := verdict.Object{Kind: "Secret", Namespace: "shop", Name: "db"}
	pv := verdict.Object{Kind: "PersistentVolume", Name: "pv-1"}
	claim := verdict.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}
	return sample{Name: `a "<b>"`, Path: verdict.Path{
		{From: secret, To: pv, Holder: pv, Field: "spec.csi.nodeStageSecretRef"},
		{From: pv, To: claim, Holder: pv, Field: "spec.claimRef"},
	}}
}

func TestWrite(t *testing.T) {
	for _, tc := range []struct {
		rule string
		o    Options
		want string
	}{
		{"text is aligned and leaves out empty fields", Options{Format: Table}, `
Sample a "<b>"
  decision  Allow
  by        Node
  secret shop/db
    ← persistentvolume pv-1             spec.csi.nodeStageSecretRef
    ← persistentvolumeclaim shop/data   spec.claimRef of persistentvolume pv-1
`},
		{"wide adds detail", Options{Format: Wide}, `
Sample a "<b>"
  decision  Allow
  by        Node
  secret shop/db
    ← persistentvolume pv-1             spec.csi.nodeStageSecretRef
    ← persistentvolumeclaim shop/data   spec.claimRef of persistentvolume pv-1
  KIND        NAME
  Secret      db
  ConfigMap   app
`},
		{"a drawing is sorted, quoted and has no repetitions", Options{Format: Dot}, `
digraph "a \"<b>\"" {
  rankdir=LR;
  node [shape=box];
  "PersistentVolume pv-1" [label="PersistentVolume\npv-1"];
  "PersistentVolumeClaim shop/data" [label="PersistentVolumeClaim\nshop/data"];
  "Secret shop/db" [label="Secret\nshop/db"];
  "PersistentVolume pv-1" -> "PersistentVolumeClaim shop/data" [label="spec.claimRef"];
  "Secret shop/db" -> "PersistentVolume pv-1" [label="spec.csi.nodeStageSecretRef"];
}
`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var got bytes.Buffer
			if err := Write(&got, newSample(), tc.o); err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimPrefix(tc.want, "\n"); got.String() != want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}

func TestJSONAndYAMLHoldTheSame(t *testing.T) {
	for format, want := range map[Format]string{
		JSON: `"name": "a \"<b>\""`,
		YAML: `name: a "<b>"`,
	} {
		var got bytes.Buffer
		if err := Write(&got, newSample(), Options{Format: format}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.String(), want) {
			t.Errorf("%s lacks %s:\n%s", format, want, got.String())
		}
	}
}

func TestDocumentsBeginWithTheirVersionAndKind(t *testing.T) {
	for format, want := range map[Format]string{
		JSON: "{\n  \"apiVersion\": \"output.node-authorizer.io/v1alpha1\",\n  \"kind\": \"Sample\",\n  \"name\": ",
		YAML: "apiVersion: output.node-authorizer.io/v1alpha1\nkind: Sample\nname: ",
	} {
		var got bytes.Buffer
		if err := Write(&got, newSample(), Options{Format: format}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got.String(), want) {
			t.Errorf("want the beginning %s, got\n%s", want, got.String())
		}
	}
}

// listed has no fields of an object.
type listed []string

func (listed) DocumentKind() string { return "Listed" }

// nothing has no fields.
type nothing struct{}

func (nothing) DocumentKind() string { return "Nothing" }

func TestWhatHasNoKindIsNoDocument(t *testing.T) {
	for rule, result := range map[string]any{
		"without a kind": struct{ A int }{1}, "an array": listed{"a"}, "an empty array": listed{}, "null": listed(nil),
		"no fields": nothing{},
	} {
		for _, format := range []Format{JSON, YAML} {
			var got bytes.Buffer
			if err := Write(&got, result, Options{Format: format}); err == nil || got.Len() > 0 {
				t.Errorf("%s: was written as %s: %s", rule, format, got.String())
			}
		}
	}
}

func TestColourDoesNotMoveColumns(t *testing.T) {
	var p Page
	p.Table(0, []string{"A", "B"}, [][]string{{Good.In("yes"), "x"}, {"maybe", "y"}})
	if got, want := string(p.encode(true)), "\x1b[2mA\x1b[0m       \x1b[2mB\x1b[0m\n\x1b[32myes\x1b[0m     x\nmaybe   y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	var p Page
	p.Line("pod %s", "a\x1b[31m\nb\u202ec\u2066d\u2028e")
	if got, want := string(p.encode(true)), "pod a\uFFFD[31m\uFFFDb\uFFFDc\uFFFDd\uFFFDe\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFormatThatDoesNotFit(t *testing.T) {
	_, err := ParseFormat("dot", []Format{Table, JSON, YAML})
	if want := `--output "dot": want table, json or yaml`; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
	if err := Write(&bytes.Buffer{}, 1, Options{Format: Dot}); err == nil {
		t.Error("an int was drawn")
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 pods", 1: "1 pod", 999: "999 pods", 1000: "1,000 pods", 1234567: "1,234,567 pods"} {
		if got := Count(n, "pod"); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
	if got := Count(2, "identity"); got != "2 identities" {
		t.Errorf("got %s", got)
	}
}

// TestWidePagesLinkTheirCodes: each code once, sorted, and none without a section.
func TestWidePagesLinkTheirCodes(t *testing.T) {
	print := func(wide bool) string {
		p := &Page{wide: wide}
		for _, code := range []string{"PodExec", "NotATechnique", "NodeProxy", "PodExec"} {
			p.Line("%s", p.Code(reference.Technique, code))
		}
		p.linkCodes()
		return string(p.encode(false))
	}
	const lines = "PodExec\nNotATechnique\nNodeProxy\nPodExec\n"
	const links = "\nCodes\n  NodeProxy  " + reference.URL + "techniques/pods.md#nodeproxy\n" +
		"  PodExec    " + reference.URL + "techniques/pods.md#podexec\n"
	if got := print(false); got != lines {
		t.Errorf("not wide: %q", got)
	}
	if got := print(true); got != lines+links {
		t.Errorf("wide: %q", got)
	}
}
