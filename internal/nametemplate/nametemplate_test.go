package nametemplate_test

import (
	"strings"
	"testing"
	"text/template"

	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
)

// fields are those of an instance. One is empty.
var fields = map[string]string{
	"InstanceID": "i-0123456789abcdef0", "PrivateDNSName": "ip-10-0-0-7.eu-west-1.compute.internal",
	"Zone": "eu-west-1a", "Region": "eu-west-1", "None": "",
}

// reference returns the result of text/template. The fields are those of a struct, so
// that an unknown one is an error.
func reference(text string) (string, error) {
	parsed, err := template.New("naming").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, struct{ InstanceID, PrivateDNSName, Zone, Region, None string }{
		fields["InstanceID"], fields["PrivateDNSName"], fields["Zone"], fields["Region"], "",
	})
	return out.String(), err
}

func ours(text string) (string, error) {
	parsed, err := nametemplate.Parse(text)
	if err != nil {
		return "", err
	}
	return parsed.Execute(fields)
}

// templates are in the supported language.
var templates = []string{
	"plain",
	"{{.InstanceID}}",
	"{{.InstanceID}}.{{.Zone}}.example",
	"{{- .InstanceID -}} .x",
	"{{/* the id */}}{{.InstanceID}}",
	"{{slice .InstanceID 2}}", "{{slice .InstanceID 2 10}}", "{{slice .InstanceID}}", "{{.InstanceID | len}}",
	`{{index .Zone 9}}`, `{{index .Zone 9 | printf "%c"}}`, "{{index .Zone}}",
	`{{printf "%s.%s" .InstanceID .Zone}}`, `{{.Zone | printf "%-20s|"}}`, `{{printf "%d" 0x10}}`, `{{printf "%q" 'a'}}`,
	`{{print .Zone "x" 1 2 true}}`, `{{println .Zone}}`,
	`{{if eq .Zone "eu-west-1a"}}a{{else if eq .Zone "eu-west-1b"}}b{{else}}c{{end}}`,
	`{{if eq .Zone "x" "eu-west-1a"}}one of them{{end}}`,
	`{{if .None}}x{{else}}none{{end}}`, `{{if not .None}}none{{end}}`,
	`{{with .Zone}}{{.}}-{{$.Region}}{{end}}`, `{{with .None}}x{{else}}none{{end}}`, `{{with .None}}x{{else with .Zone}}{{.}}{{end}}`,
	`{{$zone := .Zone}}{{$zone}}{{$zone = "x"}}{{$zone}}`, `{{$z := .Zone}}{{if true}}{{$z := "inner"}}{{$z}}{{end}}{{$z}}`,
	`{{$z := .Zone}}{{if true}}{{$z = "inner"}}{{end}}{{$z}}`,
	`{{and .Zone .Region}}`, `{{or .None .Zone}}`, `{{and .None .Zone}}|`, `{{or .None ""}}|`, `{{.Zone | or .None}}`,
	`{{or .Zone (slice .None 7)}}`,
	`{{eq 1 1}} {{ne "a" "b"}} {{lt 1 2}} {{le "b" "a"}} {{gt "b" "a"}} {{ge 2 2}} {{eq true false}} {{ne true false}}`,
	`{{(slice .InstanceID 2) | printf "n-%s"}}`, "{{true}}", "{{1}}", `{{"text"}}`, "{{`raw`}}",
	`{{if lt (len .Zone) 5}}short{{else}}long{{end}}`, `{{and 1 0}}`, `{{or 0 false "x"}}`, `{{print}}`, `{{len "äö"}}`,
	// Errors in both packages.
	"{{.InstanceID", "{{.Tags}}", "{{.InstanceID.Part}}", "{{nothing .InstanceID}}", "{{slice .Zone 100}}", "{{slice .Zone 3 2}}",
	"{{slice .Zone 1 2 3}}", "{{slice .Zone -1}}", "{{index .Zone 100}}", "{{index .Zone 1 1}}", "{{.Zone .Region}}",
	"{{.Zone | .Region}}", "{{len 1}}", "{{len}}",
	`{{eq 1 "1"}}`, "{{eq 1}}", "{{lt true false}}", "{{not}}", "{{not 1 2}}", "{{nil}}", "{{$x}}", "{{if}}x{{end}}",
	"{{with .Zone}}{{.Region}}{{end}}",
	`{{printf 1}}`, `{{printf}}`, `{{"a" | "b"}}`, "{{and}}", "{{slice}}", "{{(.Zone).Region}}", "{{$.Zone.Region}}",
	`{{$z := .Zone}}{{$z.Region}}`, `{{slice .Zone "1"}}`,
	"{{ne 1 2 3}}", "{{$0 = 1}}", "{{$ = 1}}", "{{(and)}}", "{{and .Zone (slice .None 7)}}",
}

func TestNamesAreThoseOfTextTemplate(t *testing.T) {
	for _, text := range templates {
		want, wantErr := reference(text)
		got, err := ours(text)
		if (err != nil) != (wantErr != nil) || err == nil && got != want {
			t.Errorf("%s is %q, %v; text/template makes %q, %v", text, got, err, want, wantErr)
		}
	}
}

func TestUnsupportedTemplatesAreErrors(t *testing.T) {
	for name, text := range map[string]string{
		"a loop":                       "{{range 3}}x{{end}}",
		"a template in it":             `{{define "x"}}y{{end}}{{template "x"}}`,
		"a block":                      `{{block "x" .}}y{{end}}`,
		"a definition only":            `{{define "x"}}y{{end}}`,
		"a template elsewhere":         `{{template "x"}}`,
		"all fields":                   "{{.}}",
		"all fields, printed":          "{{print .}}",
		"all fields, formatted":        `{{printf "%s" .}}`,
		"all fields, printed as lines": "{{println $}}",
		"a fraction":                   "{{1.5}}",
		"an imaginary number":          "{{2i}}",
		"a function for HTML":          "{{html .Zone}}",
		"a function for JavaScript":    "{{js .Zone}}",
		"a function for URLs":          "{{urlquery .Zone}}",
		"a call":                       "{{call .Zone}}",
	} {
		if got, err := ours(text); err == nil {
			t.Errorf("%s: %s is %q", name, text, got)
		}
	}
}

func TestErrorListsTheFields(t *testing.T) {
	_, err := ours("{{.Tags}}")
	if want := "there is no field .Tags: want .InstanceID, .None, .PrivateDNSName, .Region, .Zone"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// FuzzTemplate checks that a valid name here is the same name in text/template.
func FuzzTemplate(f *testing.F) {
	for _, text := range templates {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 || strings.Contains(text, "printf") {
			return // formats of integers distinguish int from uint8
		}
		got, err := ours(text)
		if err != nil {
			return
		}
		if want, err := reference(text); err != nil || got != want {
			t.Errorf("%s is %q; text/template makes %q, %v", text, got, want, err)
		}
	})
}
