package nametemplate_test

import (
	"strings"
	"testing"
	"text/template"

	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
)

func values() map[string]string {
	all := map[string]string{}
	for _, name := range nametemplate.Placeholders() {
		all[name] = "«" + name + "»"
	}
	return all
}

func TestPlaceholdersAreReplaced(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"plain":                             "plain",
		"{{.InstanceID}}":                   "«InstanceID»",
		"{{.ClusterName}}-{{.DashedIP}}.x":  "«ClusterName»-«DashedIP».x",
		"{{ .Zone }}{{.Zone}}":              "«Zone»«Zone»",
		"}}{.Zone}{{.Region}}}}":            "}}{.Zone}«Region»}}",
		"{{.PrivateIP}}{{.PrivateDNSName}}": "«PrivateIP»«PrivateDNSName»",
		"node-{{.Account}}.eu.example.com":  "node-«Account».eu.example.com",
	} {
		parsed, err := nametemplate.Parse(text, nametemplate.Placeholders()...)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := parsed.Execute(values()); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestMistakesAreErrors(t *testing.T) {
	const want = ": want {{.InstanceID}}, {{.PrivateDNSName}}, {{.PrivateIP}}, {{.DashedIP}}, {{.Account}}, {{.Region}}, " +
		"{{.Zone}}, {{.ClusterName}}"
	for text, want := range map[string]string{
		"a{{.InstanceID":             "{{.InstanceID has no end: write }} after the placeholder",
		"{{.Tags}}":                  "there is no placeholder {{.Tags}}" + want,
		"{{InstanceID}}":             "there is no placeholder {{InstanceID}}" + want,
		"{{.instanceid}}":            "there is no placeholder {{.instanceid}}" + want,
		"{{}}":                       "there is no placeholder {{}}" + want,
		"{{slice .InstanceID 2}}":    "there is no placeholder {{slice .InstanceID 2}}" + want,
		"{{.Zone}}{{if .Zone}}{{x}}": "there is no placeholder {{if .Zone}}" + want,
	} {
		if _, err := nametemplate.Parse(text, nametemplate.Placeholders()...); err == nil || err.Error() != want {
			t.Errorf("%s: error %v\nwant %s", text, err, want)
		}
	}
}

// FuzzTemplate checks that text/template makes the same name.
func FuzzTemplate(f *testing.F) {
	f.Add("{{.ClusterName}}-{{ .DashedIP }}.x")
	f.Add("{{.Zone}")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := nametemplate.Parse(text, nametemplate.Placeholders()...)
		if err != nil {
			return
		}
		reference, err := template.New("naming").Parse(text)
		if err != nil {
			t.Fatalf("text/template refuses %q: %v", text, err)
		}
		var want strings.Builder
		if err := reference.Execute(&want, values()); err != nil || parsed.Execute(values()) != want.String() {
			t.Fatalf("%q is %q; text/template makes %q, %v", text, parsed.Execute(values()), want.String(), err)
		}
	})
}
