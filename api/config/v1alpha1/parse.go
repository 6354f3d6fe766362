package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// Adjustment changes a parsed configuration before it is validated.
type Adjustment func(*ServerConfiguration)

// Parse reads a config file, YAML or JSON, over the defaults, applies the adjustments and
// validates the result. The error is Problems. Names are case-sensitive. A null field
// keeps its default. Anchors and aliases are rejected.
func Parse(file []byte, adjustments ...Adjustment) (*ServerConfiguration, error) {
	config := Defaults()
	config.TypeMeta = metav1.TypeMeta{}
	d, err := decodeFile(file, config, &config.TypeMeta, Kind, "node-authorizer config defaults prints a template")
	if err != nil {
		return nil, err
	}
	for _, adjust := range adjustments {
		adjust(config)
	}
	if problems := d.located(Validate(config)); len(problems) > 0 {
		return nil, problems
	}
	return config, nil
}

// decodeFile decodes a file of a kind into a value with that type meta. The error is Problems: the file is not one document of
// the kind. All other mistakes are in the decoder. The hint is about an empty file.
func decodeFile(file []byte, into any, meta *metav1.TypeMeta, kind, hint string) (*decoder, error) {
	text, problem := document(file, hint)
	if problem != nil {
		return nil, Problems{*problem}
	}
	d := &decoder{text: text, lines: map[string]int{}}
	d.decode(text.Documents[0], reflect.ValueOf(into).Elem(), "")
	if problem, ok := wrongKind(*meta, kind, d.lines); ok {
		return nil, Problems{problem}
	}
	return d, nil
}

// document parses the one YAML document of a file. The hint is about an empty file.
func document(file []byte, hint string) (*yamltext.Text, *Problem) {
	text, err := yamltext.Parse(file)
	switch {
	case err != nil:
		return nil, &Problem{Line: err.Line, Message: "neither YAML nor JSON: " + err.Problem}
	case len(text.Documents) > 1:
		return nil, &Problem{Line: text.Line(text.Documents[1]), Message: "the file has more than one document: want one"}
	case len(text.Documents) == 0:
		return nil, &Problem{Message: "the file is empty: " + hint}
	}
	return text, nil
}

// wrongKind checks apiVersion and kind. In a file of another kind, other mistakes do not
// matter.
func wrongKind(of metav1.TypeMeta, want string, lines map[string]int) (Problem, bool) {
	if of.APIVersion != APIVersion {
		return Problem{"apiVersion", lines["apiVersion"], "want " + APIVersion + given(of.APIVersion)}, true
	}
	if of.Kind != want {
		return Problem{"kind", lines["kind"], "want " + want + given(of.Kind)}, true
	}
	return Problem{}, false
}

// decoder decodes a YAML tree into structs, and continues after mistakes.
type decoder struct {
	text     *yamltext.Text
	problems Problems
	// lines has the lines of all fields in the file.
	lines map[string]int
	// broken has the fields with a value of the wrong type.
	broken map[string]bool
}

// located adds lines to the problems that validation found, and joins them with the problems of
// decoding, in the order of the file.
func (d *decoder) located(found Problems) Problems {
	problems := d.problems
	for _, p := range found {
		if d.isBroken(p.Field) {
			continue // validation saw another value than the file has
		}
		p.Line = d.lineOf(p.Field)
		problems = append(problems, p)
	}
	problems.sort()
	return problems
}

// lineOf returns the line of a field or of its nearest parent.
func (d *decoder) lineOf(field string) int {
	for ; field != ""; field = owner(field) {
		if line, ok := d.lines[field]; ok {
			return line
		}
	}
	return 0
}

// isBroken reports whether a field or one of its parents has a value of the wrong type.
func (d *decoder) isBroken(field string) bool {
	for ; field != ""; field = owner(field) {
		if d.broken[field] {
			return true
		}
	}
	return false
}

// owner returns the path of the parent of a field.
func owner(field string) string { return field[:max(strings.LastIndexAny(field, ".["), 0)] }

// refuse records a value of the wrong type.
func (d *decoder) refuse(n *yaml.Node, path, want string) {
	if d.broken == nil {
		d.broken = map[string]bool{}
	}
	d.broken[path] = true
	d.problems.add(d.text.Line(n), path, "want %s, got %s", want, describe(n))
}

func (d *decoder) decode(n *yaml.Node, into reflect.Value, path string) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		d.refuse(n, path, "the value itself")
		return
	}
	if n.Tag == "!!null" && path != "" {
		return // the default
	}
	switch target := into.Addr().Interface().(type) {
	case *Day: // YAML has dates without quotes
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!timestamp" {
			d.refuse(n, path, "a day such as 2027-01-31")
			return
		}
		*target = Day(n.Value)
		return
	case *NodeLimit: // a number needs no quotes
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!int" {
			d.refuse(n, path, nodeLimitForm)
			return
		}
		*target = NodeLimit(n.Value)
		return
	case *metav1.Duration:
		d.duration(n, target, path)
		return
	case *int64:
		if n.Tag != "!!int" || n.Decode(target) != nil {
			d.refuse(n, path, "a whole number")
		}
		return
	case *int32:
		if n.Tag != "!!int" || n.Decode(target) != nil {
			d.refuse(n, path, "a whole number")
		}
		return
	case *bool:
		if n.Tag != "!!bool" || n.Decode(target) != nil {
			d.refuse(n, path, "true or false")
		}
		return
	}
	switch into.Kind() {
	case reflect.String:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			d.refuse(n, path, "a string in quotes")
			return
		}
		into.SetString(n.Value)
	case reflect.Struct:
		d.object(n, path, func(name string) (reflect.Value, bool) { return fieldOf(into, name) }, fieldNames(into.Type()))
	case reflect.Map:
		d.gates(n, into, path)
	case reflect.Slice:
		d.list(n, into, path)
	}
}

// object decodes the fields of a mapping into the fields that find returns.
func (d *decoder) object(n *yaml.Node, path string, find func(name string) (reflect.Value, bool), known []string) {
	if n.Kind != yaml.MappingNode {
		d.refuse(n, path, "an object with the fields "+strings.Join(known, ", "))
		return
	}
	d.eachField(n, path, func(name string, value *yaml.Node, fieldPath string) {
		target, ok := find(name)
		if !ok {
			d.problems.add(d.lines[fieldPath], fieldPath, "unknown field%s", instead(name, known))
			return
		}
		d.decode(value, target, fieldPath)
	})
}

// eachField visits each field of a mapping once.
func (d *decoder) eachField(n *yaml.Node, path string, visit func(name string, value *yaml.Node, fieldPath string)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag != "!!str" || key.Anchor != "" {
			d.problems.add(d.text.Line(key), path, "want the name of a field, got %s", describe(key))
			continue
		}
		field := sub(path, key.Value)
		if first, twice := seen[key.Value]; twice {
			d.problems.add(d.text.Line(key), field, "given twice, first in line %d: remove one", first)
			continue
		}
		seen[key.Value], d.lines[field] = d.text.Line(key), d.text.Line(key)
		visit(key.Value, value, field)
	}
}

// gates decodes a map of names to booleans.
func (d *decoder) gates(n *yaml.Node, into reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.refuse(n, path, "an object such as {NAME: true}")
		return
	}
	gates := map[string]bool{}
	d.eachField(n, path, func(name string, value *yaml.Node, fieldPath string) {
		var on bool
		d.decode(value, reflect.ValueOf(&on).Elem(), fieldPath)
		if value.Tag == "!!null" {
			d.refuse(value, fieldPath, "true or false")
		}
		gates[name] = on
	})
	if len(gates) > 0 {
		into.Set(reflect.ValueOf(gates))
	}
}

func (d *decoder) list(n *yaml.Node, into reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.refuse(n, path, "a list")
		return
	}
	if into.Len() > 0 { // an empty list replaces the default
		into.Set(reflect.MakeSlice(into.Type(), 0, len(n.Content)))
	}
	for i, item := range n.Content {
		element := reflect.New(into.Type().Elem()).Elem()
		itemPath := elementPath(path, i)
		d.lines[itemPath] = d.text.Line(item)
		d.decode(item, element, itemPath)
		into.Set(reflect.Append(into, element))
	}
}

func (d *decoder) duration(n *yaml.Node, into *metav1.Duration, path string) {
	const want = "a duration such as 250ms, 10s or 1m30s"
	parsed, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || err != nil {
		d.refuse(n, path, want)
		return
	}
	into.Duration = parsed
}

// fieldOf finds a field by its JSON name, including embedded structs.
func fieldOf(of reflect.Value, name string) (reflect.Value, bool) {
	for i := range of.NumField() {
		f := of.Type().Field(i)
		if f.Anonymous {
			if found, ok := fieldOf(of.Field(i), name); ok {
				return found, true
			}
		} else if jsonName(f) == name {
			return of.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// fieldNames returns JSON names in the order of declaration.
func fieldNames(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous {
			names = append(fieldNames(f.Type), names...)
		} else {
			names = append(names, jsonName(f))
		}
	}
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// instead returns the end of a message about an unknown name.
func instead(name string, known []string) string {
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		return ": did you mean " + known[i] + "?"
	}
	return "; the fields here are " + strings.Join(known, ", ")
}

// describe returns what kind of value a node is.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Anchor != "":
		return "an anchor"
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	case n.Tag == "!!merge":
		return "a merge key"
	case n.Tag == "!!str":
		return "the string " + quoted(n.Value)
	}
	return shortened(n.Value)
}
