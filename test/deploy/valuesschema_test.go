package deploy

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// The sections of the config file that the chart's values contain.
var configSections = []string{
	"admission", "approver", "authorization", "bootstrap", "cluster", "containment", "iam", "log", "metrics", "shutdown", "webhook",
}

const durationPattern = `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

const (
	regionPattern  = `^[a-z]{2,6}(-[a-z]+)+-[0-9]+$`
	vpcPattern     = `^vpc-([0-9a-f]{8}|[0-9a-f]{17})$`
	addressPattern = `^(\[[^\[\]]*\]|[^:\[\]]*):0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
)

// stringForms are the forms of strings, which messages say in words.
var stringForms = map[string]string{
	"cluster.kubernetesVersion":             `^$|^v?1\.0*(` + minors() + `)([.+-].*)?$`,
	"webhook.address":                       "^$|" + addressPattern,
	"metrics.address":                       "^$|" + addressPattern,
	"bootstrap.address":                     "^$|" + addressPattern,
	"bootstrap.aws.accounts[]":              `^[0-9]{12}$`,
	"bootstrap.aws.regions[]":               regionPattern,
	"bootstrap.aws.vpcs[]":                  vpcPattern,
	"bootstrap.oidc.preset":                 `^(Google)?$`,
	"bootstrap.oidc.google.projects[]":      `^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`,
	"bootstrap.oidc.google.zones[]":         `^[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$`,
	"bootstrap.clusterAPI.namespaces[]":     `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`,
	"bootstrap.exec.environment[]":          `^[A-Za-z_][A-Za-z0-9_]*(=|$)`,
	"bootstrap.aws.naming":                  `^(PrivateDNSName|InstanceID|ResourceName)$|\{\{`,
	"bootstrap.aws.callerIdentity.endpoint": `^$|^https://[^/?#]+|^http://(127\.[0-9.]+|\[::1\])(:[0-9]+)?([/?#]|$)`,
	"iam.clusterID":                         `^$|^[!-~]+( [!-~]+)*$`,
	"iam.region":                            "^$|" + regionPattern,
	"iam.configMap.namespace":               `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`,
	"iam.configMap.name":                    `^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`,
	"iam.sessionCheckExemptRoles[]":         `^arn:[a-z-]+:iam::[0-9]{12}:role/([!-~]+/)?[A-Za-z0-9_+=,.@-]+$`,
	"iam.ec2.vpcs[]":                        vpcPattern,
	// The forms of the rest of a name, and of addresses, are not in the schema.
	"approver.servingCertificates[].names[]":    `\{\{\s*\.NodeName\s*\}\}`,
	"approver.servingCertificates[].networks[]": `^[0-9a-f.:]+/[1-9][0-9]*$`,
	"iam.sts.extraHosts[].host":                 `^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`,
	"iam.sts.extraHosts[].region":               regionPattern,
}

func minors() string {
	var all []string
	for m := kubeversion.Oldest; m <= kubeversion.Latest; m++ {
		all = append(all, strconv.Itoa(int(m)))
	}
	return strings.Join(all, "|")
}

// fullConfig has every part enabled, so that validation looks at every field.
const fullConfig = `
apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration
webhook: {serves: [Authorization, Admission, Authentication], certificateFile: a, keyFile: b, clientCAFile: c, allowedClientNames: [d]}
bootstrap: {address: ":10443", certificateFile: a, keyFile: b, clientCAFile: c, attestor: aws, aws: {clusterName: shop}}
approver: {enabled: true}
authorization: {mode: Chain, configFile: d}
iam: {clusterID: blue, sources: [File, ConfigMap], file: e}
`

// schemaOfConfig makes the schema of the sections from their types, and from what validation says about
// wrong values.
type schemaOfConfig struct {
	t *testing.T
	// durations are the ranges of durations, which a schema cannot express.
	durations map[string][]string
}

// required returns the properties without which validation refuses an element of a list.
func (s *schemaOfConfig) required(field string, properties map[string]any) []string {
	list, isElement := strings.CutSuffix(field, "[]")
	if !isElement {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(properties)), func(name string) bool {
		element := list + "[0]." + name
		return !slices.ContainsFunc(s.problems(list, []any{map[string]any{}}), func(p v1alpha1.Problem) bool { return p.Field == element })
	})
}

// problem returns what validation says about a value of a field; empty if nothing.
func (s *schemaOfConfig) problem(field string, value any) string {
	s.t.Helper()
	for _, p := range s.problems(field, value) {
		if p.Field == field || strings.HasPrefix(p.Field, field+"[") {
			return p.Message
		}
	}
	return ""
}

// problems returns what validation says about a configuration with a value of a field.
func (s *schemaOfConfig) problems(field string, value any) (problems v1alpha1.Problems) {
	s.t.Helper()
	config := map[string]any{} // a list in the path of the field gets one element
	if err := yaml.Unmarshal([]byte(fullConfig), &config); err != nil {
		s.t.Fatal(err)
	}
	setAt(config, strings.Split(strings.ReplaceAll(field, "[0]", "[]"), "."), value)
	text, err := yaml.Marshal(config)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = v1alpha1.Parse(text)
	errors.As(err, &problems)
	return problems
}

func setAt(object map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		if list, ok := strings.CutSuffix(name, "[]"); ok { // a list with one element
			delete(object, name)
			object[list] = []any{next}
		}
		object = next
	}
	object[path[len(path)-1]] = value
}

func (s *schemaOfConfig) of(of reflect.Type, field string) map[string]any {
	switch {
	case of == reflect.TypeFor[metav1.Duration]():
		return s.duration(field)
	case of == reflect.TypeFor[v1alpha1.NodeLimit]():
		return s.nodeLimit(field)
	case of.Kind() == reflect.Struct:
		properties := map[string]any{}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			properties[name] = s.of(of.Field(i).Type, field+"."+name)
		}
		schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
		if required := s.required(field, properties); len(required) > 0 {
			schema["required"] = required
		}
		return schema
	case of.Kind() == reflect.Map:
		return map[string]any{
			"type": "object", "propertyNames": map[string]any{"enum": kubeversion.Gates()},
			"additionalProperties": map[string]any{"type": "boolean"},
		}
	case of.Kind() == reflect.Slice:
		return s.list(of, field)
	case of.Kind() == reflect.String:
		return s.text(field)
	case of.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return s.number(field)
}

// text takes the values of an enumeration from the message about another value.
func (s *schemaOfConfig) text(field string) map[string]any {
	schema := map[string]any{"type": "string"}
	if form := stringForms[field]; form != "" {
		schema["pattern"] = form
		if field == "iam.clusterID" {
			schema["maxLength"] = 1024
		}
		return schema
	}
	if strings.Contains(field, "[]") {
		return schema // problems of an element are reported for the list
	}
	if known := choices(s.problem(field, "!")); known != nil {
		return map[string]any{"enum": known}
	}
	if strings.HasPrefix(s.problem(field, ""), "required: ") && !filledInByTheChart(field) {
		schema["minLength"] = 1
	}
	return schema
}

// filledInByTheChart reports whether a field may be empty in some cases, in which the chart's other
// values decide.
func filledInByTheChart(field string) bool {
	return slices.Contains([]string{
		"webhook.clientCAFile", "webhook.allowedClientNames", "bootstrap.clientCommonName", "authorization.configFile", "iam.file",
		"iam.clusterID", "bootstrap.aws.clusterName",
	}, field)
}

var choiceForm = regexp.MustCompile(`^want ([A-Za-z-]+(?: or [A-Za-z-]+)+), got "!"$`)

func choices(problem string) []string {
	if found := choiceForm.FindStringSubmatch(problem); found != nil {
		return strings.Split(found[1], " or ")
	}
	return nil
}

var limitForm = regexp.MustCompile(`^want a number of nodes from ([0-9]+) to ([0-9]+), or a percentage`)

// nodeLimit is a number with or without quotes, or a percentage.
func (s *schemaOfConfig) nodeLimit(field string) map[string]any {
	found := limitForm.FindStringSubmatch(s.problem(field, -1))
	if found == nil {
		s.t.Fatalf("%s: no range in %q", field, s.problem(field, -1))
	}
	least, _ := strconv.Atoi(found[1])
	most, _ := strconv.Atoi(found[2])
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "integer", "minimum": least, "maximum": most},
		map[string]any{"type": "string", "pattern": `^([1-9][0-9]{0,5}|([1-9][0-9]?|100)%)$`},
	}}
}

func (s *schemaOfConfig) list(of reflect.Type, field string) map[string]any {
	schema := map[string]any{"type": "array"}
	item := s.of(of.Elem(), field+"[]")
	if of.Elem().Kind() == reflect.String {
		if field != "bootstrap.exec.command" { // arguments may be repeated
			schema["uniqueItems"] = true
		}
		if known := choices(s.problem(field, []string{"!"})); known != nil {
			item = map[string]any{"enum": known}
		} else if s.problem(field, []string{""}) != "" && item["pattern"] == nil {
			item["minLength"] = 1
		}
	}
	if s.problem(field, []string{}) != "" && !filledInByTheChart(field) {
		schema["minItems"] = 1
	}
	schema["items"] = item
	return schema
}

var rangeForm = regexp.MustCompile(`^want a (?:number|duration) from ([^ ]+) to ([^ ,]+), got`)

func (s *schemaOfConfig) number(field string) map[string]any {
	found := rangeForm.FindStringSubmatch(s.problem(strings.ReplaceAll(field, "[]", "[0]"), -1))
	if found == nil {
		s.t.Fatalf("%s: no range in %q", field, s.problem(field, -1))
	}
	least, _ := strconv.Atoi(found[1])
	most, _ := strconv.Atoi(found[2])
	return map[string]any{"type": "integer", "minimum": least, "maximum": most}
}

func (s *schemaOfConfig) duration(field string) map[string]any {
	if found := rangeForm.FindStringSubmatch(s.problem(field, "-1s")); found != nil {
		s.durations[field] = found[1:]
	} else { // of the election, which have one upper bound and relations
		s.durations[field] = []string{"0s", rangeForm.FindStringSubmatch(s.problem("approver.leaderElection.retryPeriod", "-1s"))[2]}
	}
	return map[string]any{"type": "string", "pattern": durationPattern}
}

// conditions are the answers of validation about several fields of a section.
func conditions(section string) map[string]any {
	given := func(field string, schema map[string]any) map[string]any {
		return map[string]any{"required": []string{field}, "properties": map[string]any{field: schema}}
	}
	is := func(value any) map[string]any { return map[string]any{"const": value} }
	when := func(condition, then map[string]any) map[string]any {
		return map[string]any{"if": condition, "then": then}
	}
	both := func(schemas ...map[string]any) map[string]any { return map[string]any{"allOf": schemas} }
	switch section {
	case "webhook":
		none := when(given("clientAuthentication", is("None")), given("clientCAFile", is("")))
		none["else"] = map[string]any{"properties": map[string]any{"clientCAFile": map[string]any{"minLength": 1}}}
		unnamed := when(given("clientAuthentication", map[string]any{"enum": []string{"AnyCertificate", "None"}}),
			given("allowedClientNames", map[string]any{"maxItems": 0}))
		unnamed["else"] = map[string]any{"properties": map[string]any{"allowedClientNames": map[string]any{"minItems": 1}}}
		return both(none, unnamed)
	case "iam":
		return when(given("sessionCheck", is("None")), map[string]any{
			"properties": map[string]any{"sessionCheckExemptRoles": map[string]any{"maxItems": 0}},
		})
	case "bootstrap":
		notEmpty := map[string]any{"minLength": 1}
		registers := given("namespaces", map[string]any{"minItems": 1})
		either := func(schemas ...map[string]any) map[string]any { return map[string]any{"anyOf": schemas} }
		endpoint := given("callerIdentity", given("endpoint", map[string]any{"minLength": 1}))
		return both(
			map[string]any{"properties": map[string]any{"clusterAPI": both(
				when(either(given("clusterName", notEmpty), given("kubeconfig", notEmpty)), registers),
				when(registers, given("clusterName", map[string]any{"pattern": stringForms["bootstrap.clusterAPI.namespaces[]"]})))}},
			when(given("clusterAPI", registers), either(given("attestor", map[string]any{"enum": []string{"aws", "exec"}}),
				both(given("attestor", is("oidc")), given("oidc", given("preset", is("Google")))))),
			when(given("attestor", is("alwaysallow")), given("acceptAlwaysAllow", is(true))),
			when(given("attestor", is("aws")), both(
				given("aws", given("clusterName", map[string]any{"minLength": 1})),
				map[string]any{"properties": map[string]any{"aws": when(endpoint, given("callerIdentity", given("required", is(true))))}})))
	}
	return nil
}

// generated returns the definitions of the sections, and the ranges of durations.
func generated(t *testing.T) (definitions map[string]any, durations string) {
	s := &schemaOfConfig{t: t, durations: map[string][]string{}}
	definitions = map[string]any{}
	of := reflect.TypeFor[v1alpha1.ServerConfiguration]()
	for i := range of.NumField() {
		section, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if !slices.Contains(configSections, section) {
			continue
		}
		schema := s.of(of.Field(i).Type, section)
		for key, condition := range conditions(section) {
			schema[key] = condition
		}
		definitions["config."+section] = schema
	}
	if len(definitions) != len(configSections) {
		t.Fatalf("the sections are %v", definitions)
	}
	text, err := yaml.Marshal(s.durations)
	if err != nil {
		t.Fatal(err)
	}
	return definitions, "# The ranges of durations in the config file, generated like values.schema.json.\n" + string(text)
}

// TestValuesSchema: the part of the schema about the config file, and the ranges of durations, are
// those that the config's types and its validation give.
func TestValuesSchema(t *testing.T) {
	path, ranges := filepath.Join(chartFolder, "values.schema.json"), filepath.Join(chartFolder, "files", "durations.yaml")
	definitions, durations := generated(t)
	text, err := json.MarshalIndent(definitions, "    ", "  ")
	if err != nil {
		t.Fatal(err)
	}
	current := read(t, path)
	const marker = `    "generated": {"$comment": `
	begin := strings.Index(current, marker)
	if begin < 0 {
		t.Fatalf("%s has no line %s", path, marker)
	}
	line, _, _ := strings.Cut(current[begin:], "\n")
	body := strings.TrimSuffix(strings.TrimPrefix(string(text), "{\n  "), "\n    }")
	body = strings.ReplaceAll(body, "\n  ", "\n")
	want := current[:begin] + line + "\n    " + strings.TrimSpace(body) + "\n  }\n}\n"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		for name, content := range map[string]string{path: want, ranges: durations} {
			if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if current != want {
		t.Errorf("%s is not up to date: UPDATE_GOLDEN=1 go test -run TestValuesSchema", path)
	}
	if read(t, ranges) != durations {
		t.Errorf("%s is not up to date: UPDATE_GOLDEN=1 go test -run TestValuesSchema", ranges)
	}
}
