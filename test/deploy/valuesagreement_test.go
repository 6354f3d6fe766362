package deploy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// verdicts compares what Helm and the server say about a config in the values.
type verdicts struct {
	t *testing.T
	// strict has the schema and the checks of durations, lenient neither.
	strict, lenient *chart.Chart
}

func newVerdicts(t *testing.T) *verdicts {
	t.Helper()
	v := &verdicts{t: t}
	for _, into := range []**chart.Chart{&v.strict, &v.lenient} {
		c, err := loader.Load(chartFolder)
		if err != nil {
			t.Fatal(err)
		}
		c.Templates = slices.DeleteFunc(c.Templates, func(f *chart.File) bool {
			return !slices.Contains([]string{"templates/_helpers.tpl", "templates/configmap.yaml", "templates/bootstrap.yaml"}, f.Name)
		})
		*into = c
	}
	v.lenient.Schema = nil
	v.lenient.Files = nil
	return v
}

// of returns what the server says about the config that values give, and why Helm refuses them.
func (v *verdicts) of(owner string, values map[string]any) (config v1alpha1.Problems, helm error) {
	v.t.Helper()
	_, helm = v.render(v.strict, values)
	files, err := v.render(v.lenient, values)
	if err != nil {
		return v1alpha1.Problems{{Message: err.Error()}}, helm
	}
	name := map[string]string{"server": "configmap.yaml", "bootstrap": "bootstrap.yaml"}[owner]
	document, _, _ := strings.Cut(files["node-authorizer/templates/"+name], "\n---")
	var rendered struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(document), &rendered); err != nil {
		v.t.Fatal(err)
	}
	_, err = v1alpha1.Parse([]byte(rendered.Data["config.yaml"]))
	errors.As(err, &config)
	return config, helm
}

func (v *verdicts) render(c *chart.Chart, values map[string]any) (map[string]string, error) {
	release := chartutil.ReleaseOptions{Name: "shop", Namespace: "guards", Revision: 1, IsInstall: true}
	full, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, full)
}

const serverValues = `
image: {repository: a}
certificates: {existingSecret: serving}
server:
  authorizationConfiguration: {kind: AuthorizationConfiguration}
  mappings: {mapRoles: []}
  config:
    webhook: {serves: [Authorization, Admission, Authentication]}
    authorization: {mode: Chain}
    iam: {clusterID: blue, sources: [File, ConfigMap]}
`

const bootstrapValues = `
image: {repository: a}
server: {enabled: false}
rbac: {create: false}
bootstrap:
  enabled: true
  certificates: {existingSecret: serving, requireClient: true}
  config:
    bootstrap: {attestor: aws, aws: {clusterName: shop}}
`

// inexpressible are mistakes that the chart cannot find and the server finds, each with an example: owner, and a config
// that overrides the config in the owner's values.
var inexpressible = []struct{ name, field, message, owner, example string }{
	{
		"two listeners with one address", "address$", " is also ",
		"server", `metrics: {address: ":8443"}`,
	},
	{
		"a feature gate that the Kubernetes version does not have", `^cluster\.featureGates`, "correct cluster.kubernetesVersion",
		"server", `cluster: {kubernetesVersion: "1.30", featureGates: {PodCertificateRequest: true}}`,
	},
	{
		"a naming template with an error", `^bootstrap\.aws\.naming`, "not a template",
		"bootstrap", `bootstrap: {attestor: aws, aws: {clusterName: shop, naming: "{{.Nothing"}}`,
	},
	{
		"exempt roles of another partition", "^iam.sessionCheckExemptRoles", "want the ARN",
		"server", `iam: {clusterID: blue, sources: [File], sessionCheckExemptRoles: ["arn:aws-cn:iam::111122223333:role/a"]}`,
	},
	{
		"the relations of the approver's election times",
		`^approver\.leaderElection\.(renewDeadline|leaseDuration)`, "want more than",
		"bootstrap", `approver: {leaderElection: {leaseDuration: 5s}}`,
	},
	{
		"a host of STS that is given twice", `^iam\.sts\.extraHosts`, "given twice",
		"server", `iam: {clusterID: blue, sources: [File], sts: {extraHosts: [
			{host: a.example, region: eu-west-1}, {host: a.example, region: eu-west-2}]}}`,
	},
	{
		"a source of serving certificates that vouches for nothing", `^approver\.servingCertificates\[[0-9]+\]$`, "vouches for nothing",
		"bootstrap", `approver: {servingCertificates: [{}]}`,
	},
	{
		"DNS without names", `^approver\.servingCertificates\[[0-9]+\]\.dns$`, "requires names",
		"bootstrap", `approver: {servingCertificates: [{nodeAddresses: true, dns: true}]}`,
	},
	{
		"the name of a node in an invalid DNS name", `^approver\.servingCertificates\[[0-9]+\]\.names\[`, "want a DNS name",
		"bootstrap", `approver: {servingCertificates: [{names: ["{{.NodeName}}_"]}]}`,
	},
	{
		"a network with an address in it", `^approver\.servingCertificates\[[0-9]+\]\.networks\[`, "want a network",
		"bootstrap", `approver: {servingCertificates: [{networks: [10.0.0.7/16]}]}`,
	},
}

// stricter are the values that Helm alone refuses, with examples.
var stricter = []struct{ name, owner, example string }{
	{"null, which the config file takes for the default", "server", `metrics: {address: null}`},
	{"mistakes in a part that is not enabled", "bootstrap", `approver: {enabled: false, unattestedNodes: Ask}`},
}

// place is a field that is mutated.
type place struct {
	path []string
	kind reflect.Kind
}

// places returns all fields of a type.
func places(of reflect.Type, path []string) []place {
	kind := of.Kind()
	switch {
	case of == reflect.TypeFor[metav1.Duration]():
		return []place{{path, reflect.Int64}}
	case kind == reflect.Int32 || kind == reflect.Int64:
		return []place{{path, reflect.Int}}
	case kind != reflect.Struct:
		return []place{{path, kind}}
	}
	all := []place{{path, reflect.Struct}}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		all = append(all, places(of.Field(i).Type, append(slices.Clone(path), name))...)
	}
	return all
}

// mutable returns the fields of the sections that the values of an owner contain, other than those that
// the chart alone sets.
func mutable(sections ...string) []place {
	var all []place
	of := reflect.TypeFor[v1alpha1.ServerConfiguration]()
	for i := range of.NumField() {
		section, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if slices.Contains(sections, section) {
			all = append(all, places(of.Field(i).Type, []string{section})...)
		}
	}
	ofTheChart := []string{"iam.file", "bootstrap.address", "bootstrap.certificateFile", "bootstrap.keyFile", "bootstrap.clientCAFile"}
	return slices.DeleteFunc(all, func(p place) bool { return slices.Contains(ofTheChart, strings.Join(p.path, ".")) })
}

// comparisons is how many changed configs are compared for each owner.
const comparisons = 150

// TestValuesAgreeWithTheConfig: Helm refuses the values whose config the server would refuse, apart
// from the rows of inexpressible and stricter.
func TestValuesAgreeWithTheConfig(t *testing.T) {
	v := newVerdicts(t)
	seen := map[string]int{}
	for owner, c := range map[string]struct {
		values   string
		sections []string
	}{
		"server": {serverValues, []string{
			"cluster", "webhook", "iam", "metrics", "authorization", "admission", "containment", "log", "shutdown",
		}},
		"bootstrap": {bootstrapValues, []string{"cluster", "bootstrap", "approver", "containment", "log", "shutdown"}},
	} {
		v.compare(owner, c.values, seen)
		for _, e := range inexpressible {
			if e.owner == owner {
				v.compare(owner, c.values, seen, sectionsOf(t, e.example)...)
			}
		}
		for _, e := range stricter {
			if e.owner == owner {
				v.compare(owner, c.values, seen, sectionsOf(t, e.example)...)
			}
		}
		all := mutable(c.sections...)
		random := rand.New(rand.NewPCG(1, 2))
		for range comparisons {
			var changes []change
			for range 1 + random.IntN(2) {
				p := all[random.IntN(len(all))]
				changes = append(changes, change{p, pool[p.kind][random.IntN(len(pool[p.kind]))]})
			}
			v.compare(owner, c.values, seen, changes...)
		}
	}
	for _, e := range inexpressible {
		if seen[e.name] == 0 {
			t.Errorf("no case shows that %s is not refused by Helm", e.name)
		}
	}
	for _, e := range stricter {
		if seen[e.name] == 0 {
			t.Errorf("no case shows %s", e.name)
		}
	}
	t.Logf("%v", seen)
}

// sectionsOf returns the sections of a config as changes.
func sectionsOf(t *testing.T, text string) []change {
	t.Helper()
	sections := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &sections); err != nil {
		t.Fatal(err)
	}
	var changes []change
	for name, value := range sections {
		changes = append(changes, change{place{[]string{name}, reflect.Struct}, value})
	}
	return changes
}

// change is another value of a field.
type change struct {
	place
	value any
}

func (v *verdicts) compare(owner, text string, seen map[string]int, changes ...change) {
	v.t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		v.t.Fatal(err)
	}
	config := values[owner].(map[string]any)["config"].(map[string]any)
	var described []string
	null := false
	for _, c := range changes {
		setAt(config, c.path, c.value)
		described = append(described, fmt.Sprintf("%s=%#v", strings.Join(c.path, "."), c.value))
		null = null || strings.Contains(fmt.Sprint(c.value), "<nil>")
	}
	problems, helm := v.of(owner, values)
	if len(changes) == 0 && (helm != nil || len(problems) > 0) {
		v.t.Fatalf("%s: the unchanged values are refused: %v, %v", owner, helm, problems)
	}
	switch {
	case (helm != nil) == (len(problems) > 0):
		seen["the same verdict"]++
	case helm != nil && null:
		seen[stricter[0].name]++
	case helm != nil && v.off(config, changes):
		seen[stricter[1].name]++
	case helm != nil:
		v.t.Errorf("%s: only Helm refuses %v: %v", owner, described, helm)
	default:
		for _, p := range problems {
			name := exception(p)
			if name == "" {
				v.t.Errorf("%s: only the server refuses %v: %v", owner, described, p)
			}
			seen[name]++
		}
	}
}

// off reports whether a change is in a part that the config does not enable.
func (v *verdicts) off(config map[string]any, changes []change) bool {
	text := fmt.Sprint(config["webhook"])
	approver := fmt.Sprint(config["approver"])
	return slices.ContainsFunc(changes, func(c change) bool {
		switch c.path[0] {
		case "iam":
			unused := len(c.path) > 1 && c.path[1] == "configMap" && !strings.Contains(fmt.Sprint(config["iam"]), "ConfigMap")
			return unused || !strings.Contains(text, "Authentication") || strings.Contains(text, "address: ")
		case "approver":
			return strings.Contains(approver, "enabled:false")
		case "webhook":
			return c.path[1:] != nil && strings.Contains(text, "address: ")
		}
		return len(c.path) > 1 && c.path[1] == "aws" && strings.Contains(fmt.Sprint(config["bootstrap"]), "attestor:alwaysallow")
	})
}

func exception(p v1alpha1.Problem) string {
	for _, e := range inexpressible {
		if regexp.MustCompile(e.field).MatchString(p.Field) && strings.Contains(p.Message, e.message) {
			return e.name
		}
	}
	return ""
}
