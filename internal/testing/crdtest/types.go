package crdtest

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CheckTypes compares names, types and required fields of the schema with a Go type. Lists
// and texts must have bounds, patterns must be anchored, and rules must have a message.
func (d *Definition) CheckTypes(t *testing.T, of reflect.Type) {
	t.Helper()
	schema := d.Schema()
	schema.Properties = maps.Clone(schema.Properties)
	schema.Properties["metadata"] = Property{Type: "object"}
	compare(t, "", of, schema)
}

func compare(t *testing.T, path string, typ reflect.Type, schema Property) {
	t.Helper()
	for _, v := range schema.Validations {
		if v.Message == "" {
			t.Errorf("%s: the rule %s has no message", path, v.Rule)
		}
	}
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[metav1.Time]() {
		if schema.Type != "string" || schema.Format != "date-time" {
			t.Errorf("%s: schema has a %s of format %q, want a time", path, schema.Type, schema.Format)
		}
		return
	}
	want := map[reflect.Kind]string{
		reflect.Struct: "object", reflect.Slice: "array", reflect.String: "string", reflect.Int64: "integer", reflect.Bool: "boolean",
	}[typ.Kind()]
	if want == "" || schema.Type != want {
		t.Errorf("%s: schema has type %q, want %q", path, schema.Type, want)
		return
	}
	switch typ.Kind() {
	case reflect.Slice:
		if schema.MaxItems == 0 {
			t.Errorf("%s: a list without bounds", path)
		}
		compare(t, path+"[]", typ.Elem(), *schema.Items)
	case reflect.String:
		checkText(t, path, schema)
	case reflect.Struct:
		if typ != reflect.TypeFor[metav1.ObjectMeta]() {
			compareFields(t, path, typ, schema)
		}
	}
}

func checkText(t *testing.T, path string, schema Property) {
	t.Helper()
	if schema.MaxLength == 0 && len(schema.Enum) == 0 && path != ".apiVersion" && path != ".kind" {
		t.Errorf("%s: a text without bounds", path)
	}
	_, err := regexp.Compile(schema.Pattern)
	anchored := strings.HasPrefix(schema.Pattern, "^") && strings.HasSuffix(schema.Pattern, "$")
	if err != nil || schema.Pattern != "" && !anchored {
		t.Errorf("%s: pattern %q is not anchored, or none: %v", path, schema.Pattern, err)
	}
}

func compareFields(t *testing.T, path string, typ reflect.Type, schema Property) {
	t.Helper()
	var names, required []string
	for _, field := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && options == "inline" ||
			len(field.Index) > 1 && typ.Field(field.Index[0]).Type == reflect.TypeFor[metav1.ObjectMeta]() {
			continue
		}
		names = append(names, name)
		if options != "omitempty" {
			required = append(required, name)
		}
		if inner, ok := schema.Properties[name]; ok {
			compare(t, path+"."+name, field.Type, inner)
		}
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(schema.Properties)); !slices.Equal(got, names) {
		t.Errorf("%s: schema has %v, type has %v", path, got, names)
	}
	slices.Sort(required)
	if got := slices.Sorted(slices.Values(schema.Required)); !slices.Equal(got, required) {
		t.Errorf("%s: schema demands %v, type always has %v", path, got, required)
	}
}
