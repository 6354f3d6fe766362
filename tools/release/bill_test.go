package main

import (
	"bytes"
	"debug/buildinfo"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The bill of materials fits the schema of CycloneDX, and lists the modules that are linked into the program.
func TestBill(t *testing.T) {
	schema := billSchema(t)
	for _, p := range built.platforms {
		text := read(t, built.out, built.fileName(p, ".cdx.json"))
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		var bom cyclonedx.BOM
		if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatal(err)
		}
		_, dir := unpackedArchive(t, p)
		program := filepath.Join(dir, p.program())
		sum, err := checksum(program)
		if err != nil {
			t.Fatal(err)
		}
		if c := bom.Metadata.Component; c.Version != built.version || (*c.Hashes)[0].Value != sum {
			t.Errorf("%s: the bill is about version %s with checksum %s", p, c.Version, (*c.Hashes)[0].Value)
		}
		listed := map[string]string{}
		for _, c := range *bom.Components {
			listed[c.Name] = c.Version
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if len(listed) != len(info.Deps)+1 || listed["std"] != "v"+strings.TrimPrefix(info.GoVersion, "go") {
			t.Errorf("%s: the bill has %d modules and Go %s, the program %d and %s",
				p, len(listed)-1, listed["std"], len(info.Deps), info.GoVersion)
		}
		for _, m := range info.Deps {
			if listed[m.Path] != m.Version {
				t.Errorf("%s: the bill has %s %s, the program %s", p, m.Path, listed[m.Path], m.Version)
			}
		}
	}
}

// billSchema returns the schema that the library brings.
func billSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir := strings.TrimSpace(command(t, ".", nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go"))
	compiler := jsonschema.NewCompiler()
	for url, name := range map[string]string{
		"http://cyclonedx.org/schema/bom-1.6.schema.json":  "bom-1.6.schema.json",
		"http://cyclonedx.org/schema/spdx.schema.json":     "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(t, dir, "schema", name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(url, document); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
