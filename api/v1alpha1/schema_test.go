package v1alpha1

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// definition has the fields of a CustomResourceDefinition that these tests need.
type definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Names        struct {
			Kind, ListKind, Plural, Singular string
			ShortNames                       []string
		}
		Versions []struct {
			Name                     string
			Served, Storage          bool
			Subresources             map[string]any
			AdditionalPrinterColumns []struct {
				Name, Type, JSONPath string
				Priority             int
			}
			Schema struct{ OpenAPIV3Schema property }
		}
	}
}

type property struct {
	Type, Format, Pattern string
	Properties            map[string]property
	Items                 *property
	Required              []string
	Enum                  []string
	Default               any
	MaxLength, MaxItems   int
}

func manifest(t *testing.T) *definition {
	t.Helper()
	text, err := os.ReadFile("nodeattestations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd definition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("%d versions, want 1", len(crd.Spec.Versions))
	}
	return &crd
}

func TestManifestIsOfTheResource(t *testing.T) {
	crd := manifest(t)
	version := crd.Spec.Versions[0]
	if crd.Metadata.Name != Resource+"."+Group || crd.Spec.Group != Group || crd.Spec.Scope != "Cluster" ||
		crd.Spec.Names.Kind != Kind || crd.Spec.Names.ListKind != ListKind || crd.Spec.Names.Plural != Resource ||
		version.Name != Version || !version.Served || !version.Storage {
		t.Errorf("manifest is of %+v", crd.Spec)
	}
	if _, ok := version.Subresources["status"]; !ok {
		t.Error("no subresource status: with write access to the ledger, the status of a token could be written")
	}
}

// TestSchemaIsThatOfTheTypes compares names, types and required fields.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	schema := manifest(t).Spec.Versions[0].Schema.OpenAPIV3Schema
	schema.Properties["metadata"] = property{Type: "object", Properties: map[string]property{}}
	compare(t, "", reflect.TypeFor[NodeAttestation](), schema)
}

// TestSchemaAllowsAllCredentials: a status that the schema rejects could not be written.
func TestSchemaAllowsAllCredentials(t *testing.T) {
	status := manifest(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	if got := status.Properties["credentials"].MaxItems; got != MaxCredentials {
		t.Errorf("the schema takes %d credentials, an entry may hold %d", got, MaxCredentials)
	}
}

func compare(t *testing.T, path string, typ reflect.Type, schema property) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := map[reflect.Kind]string{
		reflect.Struct: "object", reflect.Slice: "array", reflect.String: "string", reflect.Int64: "integer",
	}[typ.Kind()]
	if typ == reflect.TypeFor[metav1.Time]() {
		if schema.Type != "string" || schema.Format != "date-time" {
			t.Errorf("%s: schema has a %s of format %q, want a time", path, schema.Type, schema.Format)
		}
		return
	}
	if schema.Type != want {
		t.Errorf("%s: schema has type %q, want %q", path, schema.Type, want)
	}
	switch typ.Kind() {
	case reflect.Slice:
		if schema.MaxItems == 0 {
			t.Errorf("%s: a list without bounds", path)
		}
		compare(t, path+"[]", typ.Elem(), *schema.Items)
	case reflect.String:
		if schema.MaxLength == 0 && len(schema.Enum) == 0 && path != ".apiVersion" && path != ".kind" {
			t.Errorf("%s: a text without bounds", path)
		}
		if _, err := regexp.Compile(schema.Pattern); err != nil ||
			schema.Pattern != "" && (schema.Pattern[0] != '^' || !strings.HasSuffix(schema.Pattern, "$")) {
			t.Errorf("%s: pattern %q is not anchored, or none: %v", path, schema.Pattern, err)
		}
	case reflect.Struct:
		if typ == reflect.TypeFor[metav1.ObjectMeta]() {
			return
		}
		compareFields(t, path, typ, schema)
	}
}

func compareFields(t *testing.T, path string, typ reflect.Type, schema property) {
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

func TestPhasesOfTheSchemaAreThoseOfTheType(t *testing.T) {
	status := manifest(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	want := []string{string(Issued), string(Certified), string(Registered), string(Revoked)}
	if got := status.Properties["phase"].Enum; !slices.Equal(got, want) {
		t.Errorf("phases are %v, want %v", got, want)
	}
	if !reflect.DeepEqual(status.Default, map[string]any{"phase": string(Issued)}) || status.Properties["phase"].Default != string(Issued) {
		t.Errorf("defaults are %v and %v: an entry must have the phase Issued when it is created", status.Default,
			status.Properties["phase"].Default)
	}
}

// TestColumnsFitOnOneLine: there are few columns, each of an existing field.
func TestColumnsFitOnOneLine(t *testing.T) {
	version := manifest(t).Spec.Versions[0]
	var narrow, wide []string
	for _, column := range version.AdditionalPrinterColumns {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
		if column.JSONPath == ".metadata.creationTimestamp" {
			continue
		}
		at := version.Schema.OpenAPIV3Schema
		for _, name := range strings.Split(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(column.JSONPath, ""), ".")[1:] {
			if at.Items != nil {
				at = *at.Items
			}
			inner, ok := at.Properties[name]
			if !ok {
				t.Fatalf("column %s: %s has no field %s", column.Name, column.JSONPath, name)
			}
			at = inner
		}
	}
	if want := []string{"Node", "Phase", "Reason", "Age"}; !slices.Equal(narrow, want) {
		t.Errorf("columns are %v, want %v", narrow, want)
	}
	if want := []string{"Provider", "Instance", "Zone", "Address", "Token ID", "Certificate until"}; !slices.Equal(wide, want) {
		t.Errorf("columns of -o wide are %v, want %v", wide, want)
	}
}

func TestPhaseIsOfTheTokenInSpec(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		status NodeAttestationStatus
		want   Phase
	}{
		{"nothing is known yet", NodeAttestationStatus{}, Issued},
		{"only the default", NodeAttestationStatus{Phase: Issued}, Issued},
		{"of this token", NodeAttestationStatus{Phase: Registered, TokenID: "token1"}, Registered},
		{"of an earlier token", NodeAttestationStatus{Phase: Registered, TokenID: "token0"}, Issued},
		{"revoked, whatever the token", NodeAttestationStatus{Phase: Revoked, TokenID: "token0"}, Revoked},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			entry := NodeAttestation{Spec: NodeAttestationSpec{TokenID: "token1"}, Status: tc.status}
			if got := entry.Phase(); got != tc.want {
				t.Errorf("phase is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestDeepCopySharesNothing fills every field and looks for shared memory.
func TestDeepCopySharesNothing(t *testing.T) {
	list := &NodeAttestationList{}
	fill(reflect.ValueOf(list).Elem())
	copied := list.DeepCopyObject().(*NodeAttestationList)
	if !reflect.DeepEqual(list, copied) {
		t.Errorf("copy is\n%+v\nwant\n%+v", copied, list)
	}
	shared(t, "list", reflect.ValueOf(list).Elem(), reflect.ValueOf(copied).Elem())
}

func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1_800_000_000, 0))))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.ObjectMeta]() {
			v.FieldByName("Labels").Set(reflect.ValueOf(map[string]string{"a": "b"}))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Int64:
		v.SetInt(1)
	}
}

func shared(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	if a.Type() == reflect.TypeFor[metav1.Time]() {
		return // its pointer to a location is never written
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() {
			shared(t, path, a.Elem(), b.Elem())
		}
	case reflect.Slice:
		for i := range a.Len() {
			shared(t, path+"[]", a.Index(i), b.Index(i))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			shared(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	}
}
