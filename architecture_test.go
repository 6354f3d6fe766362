package nodeauthorizer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/node-authorizer/node-authorizer"

// goPackage has the fields of `go list -json` that this file needs.
type goPackage struct {
	ImportPath, Name, Dir string
	Standard              bool
	Imports, GoFiles      []string
}

// goList returns the packages that `go list` lists.
func goList(t *testing.T, args ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Dir,Standard,Imports,GoFiles"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.String())
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// inModule is the path of a package within the module, and whether it is in it.
func inModule(importPath string) (string, bool) { return strings.CutPrefix(importPath, modulePath+"/") }

// layers reads the table of packages in ARCHITECTURE.md. The layer of main
// packages is above all others.
func layers(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9]+) \\| `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		layer, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		found[row[2]] = layer
	}
	if len(found) == 0 {
		t.Fatal("ARCHITECTURE.md has no table of packages")
	}
	return found
}

// layerOf returns the layer of a package. A package below one in the table
// (internal/testing/fakeaws below internal/testing) has the layer of that one.
func layerOf(layers map[string]int, name string) (layer int, known bool) {
	for path := name; ; {
		if layer, known = layers[path]; known {
			return layer, true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return 0, false
		}
		path = path[:i]
	}
}

func TestEveryPackageIsInTheTable(t *testing.T) {
	layers, packages := layers(t), goList(t, "./...")
	for _, p := range packages {
		path, ours := inModule(p.ImportPath)
		if !ours || p.Name == "main" {
			continue
		}
		if _, known := layerOf(layers, path); !known {
			t.Errorf("package %s is not in the table of packages of ARCHITECTURE.md", path)
		}
	}
	for path := range layers {
		if !slices.ContainsFunc(packages, func(p goPackage) bool { return p.ImportPath == modulePath+"/"+path }) {
			t.Errorf("ARCHITECTURE.md names package %s, but there is no such package", path)
		}
	}
}

// TestImportsRunDownward allows packages to import packages of lower layers, the package above them
// in the tree (internal/aws/iam/sts imports internal/aws/iam), and few others.
func TestImportsRunDownward(t *testing.T) {
	sideways := map[[2]string]bool{
		{"nodeauthz", "rbac"}: true, {"attackpaths", "nodescope"}: true,
		{"internal/authz/chain", "nodescope"}: true, {"internal/authz/chain", "internal/scope/quarantine"}: true,
		{"internal/join/ledger", "internal/informer"}:   true,
		{"internal/join/machines", "internal/informer"}: true, {"internal/join/machines", "internal/join/ledger"}: true,
	}
	layers := layers(t)
	for _, p := range goList(t, "./...") {
		from, ours := inModule(p.ImportPath)
		if !ours || p.Name == "main" {
			continue
		}
		for _, imported := range p.Imports {
			to, ours := inModule(imported)
			if !ours || strings.HasPrefix(from, to+"/") || sideways[[2]string{from, to}] {
				continue
			}
			fromLayer, _ := layerOf(layers, from)
			if toLayer, _ := layerOf(layers, to); toLayer >= fromLayer {
				t.Errorf("%s (layer %d) imports %s (layer %d)", from, fromLayer, to, toLayer)
			}
		}
	}
}

// TestTheLinkerMayDropMethods: the linker keeps every exported method of every type if a program can
// reach text/template, because templates look up methods by name. Dependencies import it for functions
// that this program does not call.
func TestTheLinkerMayDropMethods(t *testing.T) {
	for _, p := range goList(t, "-deps", "-tags", makeVariable(t, "TAGS"), "./cmd/node-authorizer") {
		if p.ImportPath == "html/template" {
			t.Error("a package imports html/template, which registers or renders pages")
		}
		if _, ours := inModule(p.ImportPath); ours && slices.Contains(p.Imports, "text/template") {
			t.Errorf("%s imports text/template", p.ImportPath)
		}
	}
}

// makeVariable returns the value of a variable in the Makefile.
func makeVariable(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the Makefile does not set %s", name)
	}
	return string(found[1])
}

// TestCoreKnowsNoTransport checks the direct imports of the packages of layers 0 to 2. Their
// dependencies in k8s.io import net/http.
func TestCoreKnowsNoTransport(t *testing.T) {
	forbidden := []string{
		"net/http", "k8s.io/client-go", "k8s.io/component-base", "k8s.io/klog", "github.com/prometheus", "github.com/spf13",
		"os", "log", "log/slog",
	}
	layers := layers(t)
	for _, p := range goList(t, "./...") {
		from, ours := inModule(p.ImportPath)
		if layer, known := layerOf(layers, from); !ours || !known || layer > 2 {
			continue
		}
		for _, imported := range p.Imports {
			for _, f := range forbidden {
				if imported == f || strings.HasPrefix(imported, f+"/") {
					t.Errorf("%s imports %s", from, imported)
				}
			}
		}
	}
}

func TestVerdictNeedsTheStandardLibraryAlone(t *testing.T) {
	for _, p := range goList(t, "-deps", "./verdict") {
		if !p.Standard && p.ImportPath != modulePath+"/verdict" {
			t.Errorf("verdict depends on %s", p.ImportPath)
		}
	}
}

// TestModuleDoesNotNeedKubernetesItself checks all packages, including test packages, and go.mod.
// Nested modules may need it.
func TestModuleDoesNotNeedKubernetesItself(t *testing.T) {
	const kubernetes = "k8s.io/kubernetes"
	for _, p := range goList(t, "-deps", "-test", "./...") {
		if p.ImportPath == kubernetes || strings.HasPrefix(p.ImportPath, kubernetes+"/") {
			t.Errorf("the module depends on %s", p.ImportPath)
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)\sk8s\.io/kubernetes\s`).Match(mod) {
		t.Errorf("go.mod requires %s", kubernetes)
	}
}

func TestPackagesAreNamedAfterTheDomain(t *testing.T) {
	placeless := []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base", "lib"}
	for _, p := range goList(t, "./...") {
		path, _ := inModule(p.ImportPath)
		for _, word := range append(strings.Split(path, "/"), p.Name) {
			if slices.Contains(placeless, word) {
				t.Errorf("package %s is called %s, which says nothing about nodes", path, word)
			}
		}
	}
}
