// Package typeschema makes JSON Schemas (draft 2020-12) of Go types, for tests: the properties from
// the types, as encoding/json writes them, and the descriptions from the comments in their source.
// An object has no other properties.
//
// Libraries take one comment for each field, and let null be written for every list. Here fields that
// a comment names together share it, and a list is null only where that is said.
package typeschema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Generator makes schemas.
type Generator struct {
	// Source has the comments and the constants.
	Source *Source
	// Enums are the values of types whose constants are no literals, and Open are types whose
	// constants are not all values: their values match the pattern.
	Enums map[reflect.Type][]string
	Open  map[reflect.Type]string
	// FieldEnums are the values of fields of strings and lists of strings, by "package.Type.Field".
	FieldEnums map[string][]string
	// FieldTexts and TypeTexts are descriptions that Source does not have, or not in this form, by
	// "package.Type.Field" and "package.Type".
	FieldTexts, TypeTexts map[string]string
	// Nullable are lists that can be null, by "package.Type.Field".
	Nullable map[string]bool
}

// Document says what a schema is of.
type Document struct {
	// ID is the URI of the schema.
	ID string
	// Description says what the document is, and APIVersion and Kind are its first two properties.
	Description, APIVersion, Kind string
	Type                          reflect.Type
	// Metadata is the type of the third property; nil for none.
	Metadata reflect.Type
}

// Schema returns the schema of a document, as the text of a file.
func (g *Generator) Schema(d Document) ([]byte, error) {
	m := &maker{Generator: g, names: map[string]reflect.Type{}}
	s, err := m.object(d.Type)
	if err != nil {
		return nil, err
	}
	const versionText = "The version of this form. Within a version, fields and values are only added."
	header := properties{
		{"apiVersion", &schema{Description: versionText, Const: d.APIVersion}},
		{"kind", &schema{Description: "What the document is.", Const: d.Kind}},
	}
	if d.Metadata != nil {
		metadata, err := m.of(d.Metadata)
		if err != nil {
			return nil, err
		}
		header = append(header, property{"metadata", metadata})
	}
	s.Dialect, s.ID, s.Title, s.Description = dialect, d.ID, d.Kind, d.Description
	s.Properties = append(header, s.Properties...)
	s.Required = append([]string{"apiVersion", "kind"}, s.Required...)
	slices.SortFunc(m.defs, func(a, b property) int { return strings.Compare(a.name, b.name) })
	s.Defs = m.defs
	return s.text()
}

// maker makes one schema.
type maker struct {
	*Generator
	// names are the definitions that are made, or are being made.
	names map[string]reflect.Type
	defs  properties
}

// of returns the schema of a type, without null.
func (m *maker) of(t reflect.Type) (*schema, error) {
	switch {
	case t.Kind() == reflect.Pointer:
		return m.of(t.Elem())
	case t == reflect.TypeFor[time.Time](), t.Name() == "Time" && t.Kind() == reflect.Struct:
		return &schema{Type: "string", Format: "date-time"}, nil
	case t == reflect.TypeFor[json.RawMessage]():
		return &schema{}, nil
	case m.Enums[t] != nil, m.Open[t] != "":
		return m.word(t)
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()), t.Implements(reflect.TypeFor[json.Marshaler]()):
		return nil, fmt.Errorf("%v encodes itself: add its values", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer", Minimum: new(int)}, nil
	case reflect.String:
		return m.word(t)
	case reflect.Slice:
		items, err := m.of(t.Elem())
		return &schema{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := m.of(t.Elem())
		return &schema{Type: "object", Additional: values}, err
	case reflect.Struct:
		return m.reference(t, m.object)
	default:
		return nil, fmt.Errorf("%v has no schema", t)
	}
}

// word is the schema of a type of strings.
func (m *maker) word(t reflect.Type) (*schema, error) {
	values := m.Enums[t]
	switch {
	case m.Open[t] != "":
		return &schema{Type: "string", Pattern: m.Open[t]}, nil
	case values == nil && t.PkgPath() != "":
		values = m.Source.values[name(t)]
	}
	if len(values) == 0 {
		return &schema{Type: "string"}, nil
	}
	return m.reference(t, func(reflect.Type) (*schema, error) { return &schema{Type: "string", Enum: values}, nil })
}

// reference makes a definition of a type, unless it exists, and refers to it.
func (m *maker) reference(t reflect.Type, define func(reflect.Type) (*schema, error)) (of *schema, err error) {
	named := capital(t.Name())
	if known := m.names[named]; known != nil && known != t {
		named = capital(path.Base(t.PkgPath())) + named
	}
	if known := m.names[named]; known != nil && known != t {
		return nil, fmt.Errorf("%v and %v have the same name", known, t)
	} else if known == nil {
		m.names[named] = t
		var defined *schema
		defined, err = define(t)
		if defined.Description = cmp.Or(m.TypeTexts[name(t)], m.Source.describe(name(t))); defined.Description == "" {
			err = errors.Join(err, fmt.Errorf("%s has no description: give the type a comment", name(t)))
		}
		m.defs = append(m.defs, property{named, defined})
	}
	return &schema{Ref: "#/$defs/" + named}, err
}

// object is the schema of a struct.
func (m *maker) object(t reflect.Type) (*schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &schema{Type: "object", Additional: false}
	var failed []error
	for i := range t.NumField() {
		if err := m.field(s, t, t.Field(i)); err != nil {
			failed = append(failed, err)
		}
	}
	return s, errors.Join(failed...)
}

// field adds a field, or the fields of an embedded struct.
func (m *maker) field(s *schema, t reflect.Type, f reflect.StructField) error {
	tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case tag == "-", !f.IsExported() && !f.Anonymous, f.Anonymous && f.Name == "TypeMeta": // the header has apiVersion and kind
		return nil
	case f.Anonymous && tag == "":
		embedded, err := m.object(f.Type)
		for _, p := range embedded.Properties {
			s.Properties = append(s.Properties, p)
			if slices.Contains(embedded.Required, p.name) {
				s.Required = append(s.Required, p.name)
			}
		}
		return err
	case tag == "":
		tag = f.Name
	}
	key := name(t) + "." + f.Name
	made, err := m.of(f.Type)
	if made == nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if values := m.FieldEnums[key]; made.Items != nil {
		made.Items.Enum = values
	} else if values != nil {
		made.Enum = values
	}
	optional := options == "omitempty" || options == "omitzero"
	if !optional && (f.Type.Kind() == reflect.Pointer || m.Nullable[key]) {
		made = made.orNull()
	}
	if made.Description = cmp.Or(m.FieldTexts[key], m.Source.fields[key]); made.Description == "" {
		err = errors.Join(err, fmt.Errorf("%s has no description: give the field a comment", key))
	}
	s.Properties = append(s.Properties, property{tag, made})
	if !optional {
		s.Required = append(s.Required, tag)
	}
	return err
}

// name is the name of a type with its package, as in the keys of a Generator.
func name(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }
