// Package crdtest checks in tests that a CustomResourceDefinition matches its Go types, and that
// everything in it has a bound.
package crdtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Definition has the fields of a CustomResourceDefinition that the checks read.
type Definition struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Names        struct {
			Kind, ListKind, Plural, Singular string
			ShortNames                       []string
		}
		Versions []Version
	}
}

// Version is one version of a resource.
type Version struct {
	Name                     string
	Served, Storage          bool
	Subresources             map[string]any
	AdditionalPrinterColumns []struct {
		Name, Type, JSONPath string
		Priority             int
	}
	Schema struct{ OpenAPIV3Schema Property }
}

// Property is a part of a schema.
type Property struct {
	Type, Format, Pattern string
	Properties            map[string]Property
	Items                 *Property
	Required              []string
	Enum                  []string
	Default               any
	MaxLength, MaxItems   int
	Validations           []Validation `json:"x-kubernetes-validations"`
}

// Validation is a rule in CEL.
type Validation struct{ Rule, Message string }

// Read reads a definition with one version.
func Read(t *testing.T, file string) *Definition {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d Definition
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Spec.Versions) != 1 {
		t.Fatalf("%d versions, want 1", len(d.Spec.Versions))
	}
	return &d
}

// Schema returns the schema of the version.
func (d *Definition) Schema() Property { return d.Spec.Versions[0].Schema.OpenAPIV3Schema }

// At returns the part of a schema at a path of names: "spec", "names". The elements of a list are at
// the path of the list.
func (p Property) At(t *testing.T, path ...string) Property {
	t.Helper()
	for _, name := range path {
		if p.Items != nil {
			p = *p.Items
		}
		inner, ok := p.Properties[name]
		if !ok {
			t.Fatalf("the schema has no %s of %s", name, strings.Join(path, "."))
		}
		p = inner
	}
	return p
}

// Names are the names of a resource.
type Names struct{ Group, Version, Kind, ListKind, Resource string }

// CheckNames checks that the definition is of a resource of the cluster, with a subresource status if there is a status.
func (d *Definition) CheckNames(t *testing.T, want Names) {
	t.Helper()
	version := d.Spec.Versions[0]
	got := Names{d.Spec.Group, version.Name, d.Spec.Names.Kind, d.Spec.Names.ListKind, d.Spec.Names.Plural}
	if got != want || d.Metadata.Name != want.Resource+"."+want.Group || d.Spec.Names.Singular != strings.ToLower(want.Kind) {
		t.Errorf("the definition %s is of %+v, want %+v", d.Metadata.Name, got, want)
	}
	if d.Spec.Scope != "Cluster" || !version.Served || !version.Storage {
		t.Errorf("scope %s, served %v, stored %v", d.Spec.Scope, version.Served, version.Storage)
	}
	_, subresource := version.Subresources["status"]
	if _, status := d.Schema().Properties["status"]; status != subresource {
		t.Error("a status without a subresource status, or the other way: with write access to the resource, its status could be written")
	}
}

// CheckColumns compares the columns of a table and those that only -o wide has. Each shows a field.
func (d *Definition) CheckColumns(t *testing.T, wantNarrow, wantWide []string) {
	t.Helper()
	filter := regexp.MustCompile(`\[[^]]*\]`)
	var narrow, wide []string
	for _, column := range d.Spec.Versions[0].AdditionalPrinterColumns {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
		if column.JSONPath == ".metadata.creationTimestamp" {
			continue
		}
		d.Schema().At(t, strings.Split(filter.ReplaceAllString(column.JSONPath, ""), ".")[1:]...)
	}
	if !slices.Equal(narrow, wantNarrow) {
		t.Errorf("columns are %v, want %v", narrow, wantNarrow)
	}
	if !slices.Equal(wide, wantWide) {
		t.Errorf("columns of -o wide are %v, want %v", wide, wantWide)
	}
}
