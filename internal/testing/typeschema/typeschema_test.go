package typeschema

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Words is a closed set of words.
type Words string

const (
	// First comes first.
	First Words = "first"
	// Second comes after First.
	Second Words = "second"
)

// Inner is part of others, and Name is empty for most.
type Inner struct {
	// Name is the name.
	Name string `json:"name,omitempty"`
}

// Sample has every kind of field.
type Sample struct {
	Inner
	// Word is one of few: [First]. The Word object is not it.
	Word Words `json:"word"`
	// From and To are times; nil if unknown.
	From *time.Time `json:"from"`
	To   time.Time  `json:"to"`
	// List is never null.
	List []Inner `json:"list"`
	// Maybe can be null.
	Maybe []string `json:"maybe"`
	// Numbers are by name.
	Numbers map[string]int `json:"numbers,omitempty"`
	// Raw is anything.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Hidden is not written.
	Hidden bool `json:"-"`
}

const here = "github.com/node-authorizer/node-authorizer/internal/testing/typeschema"

// source has the types of this file.
func source(t *testing.T) *Source {
	t.Helper()
	s, err := Read(t.TempDir(), here)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "typeschema_test.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s.add(map[string][]*ast.File{here: {file}})
	return s
}

// TestSchema compares a schema with testdata/sample.json, which UPDATE_GOLDEN=1 writes.
func TestSchema(t *testing.T) {
	g := &Generator{Source: source(t), Nullable: map[string]bool{here + ".Sample.Maybe": true}}
	made, err := g.Schema(Document{
		ID: "https://example.org/sample.json", Description: "A sample.", APIVersion: "example.org/v1", Kind: "Sample",
		Type: reflect.TypeFor[*Sample](),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "sample.json")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, made, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != string(made) {
		t.Errorf("%v, got\n%s", err, made)
	}
}

// Bare has fields without comments.
type Bare struct {
	Name  string `json:"name"`
	Other bool   `json:"other"`
}

// Outer is described, and its fields are not.
type Outer struct {
	// Bare are some.
	Bare []Bare `json:"bare"`
}

func TestWhatHasNoSchema(t *testing.T) {
	for _, tc := range []struct {
		rule string
		of   reflect.Type
		want []string
	}{
		{"every field has a description", reflect.TypeFor[Bare](), []string{"Bare.Name has no description", "Bare.Other has no"}},
		{"also in types of fields", reflect.TypeFor[Outer](), []string{"Bare.Name has no description", "Bare.Other has no"}},
		{"every type has a description", reflect.TypeFor[struct{ Of []reflect.StructTag }](), []string{"no description"}},
		{"what encodes itself has values", reflect.TypeFor[struct{ Of net.IP }](), []string{"net.IP encodes itself: add its values"}},
		{"functions", reflect.TypeFor[struct{ Of func() }](), []string{"func() has no schema"}},
		{"any type", reflect.TypeFor[struct{ Of any }](), []string{"has no schema"}},
	} {
		_, err := (&Generator{Source: source(t)}).Schema(Document{Type: tc.of})
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", tc.rule, err, want)
			}
		}
	}
}
