package nodeauthorizer_test

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// publicPackages are the packages that other modules can import.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var public []string
	for _, p := range goList(t, "./...") {
		if p.Name == "main" || isInternal(p.ImportPath) || p.ImportPath == modulePath { // the last has only tests
			continue
		}
		public = append(public, p.ImportPath)
	}
	if len(public) == 0 {
		t.Fatal("there is no public package")
	}
	return public
}

// TestPublicSignaturesNameNoInternalType: other modules cannot name internal types, so that parameters
// and results of public packages must have public types.
func TestPublicSignaturesNameNoInternalType(t *testing.T) {
	load := typeLoader(t)
	for _, importPath := range publicPackages(t) {
		for _, found := range internalTypes(load(importPath)) {
			t.Errorf("package %s: %s", strings.TrimPrefix(importPath, modulePath+"/"), found)
		}
	}
}

// TestInternalTypesAreFound checks that every position of a type in a signature is visited.
func TestInternalTypesAreFound(t *testing.T) {
	hiddenPackage := types.NewPackage(modulePath+"/internal/hidden", "hidden")
	hidden := types.NewNamed(types.NewTypeName(token.NoPos, hiddenPackage, "Hidden", nil), types.NewStruct(nil, nil), nil)
	one := func(of types.Type) *types.Tuple { return types.NewTuple(types.NewVar(token.NoPos, nil, "v", of)) }
	for place, of := range map[string]types.Type{
		"itself":          hidden,
		"a pointer":       types.NewPointer(hidden),
		"a slice":         types.NewSlice(hidden),
		"an array":        types.NewArray(hidden, 2),
		"a channel":       types.NewChan(types.SendRecv, hidden),
		"a map's key":     types.NewMap(hidden, types.Typ[types.Int]),
		"a map's element": types.NewMap(types.Typ[types.Int], types.NewPointer(hidden)),
		"a parameter":     types.NewSignatureType(nil, nil, nil, one(hidden), nil, false),
		"a result":        types.NewSignatureType(nil, nil, nil, nil, one(types.NewSlice(hidden)), false),
	} {
		public := types.NewPackage(modulePath+"/public", "public")
		public.Scope().Insert(types.NewVar(token.NoPos, public, "V", of))
		declared := types.NewTypeName(token.NoPos, public, "S", nil)
		types.NewNamed(declared, types.NewStruct([]*types.Var{types.NewField(token.NoPos, public, "F", of, false)}, nil), nil)
		public.Scope().Insert(declared)
		if got := internalTypes(public); len(got) != 2 {
			t.Errorf("%s: found %q, want the variable and the field", place, got)
		}
		unexported := types.NewPackage(modulePath+"/public", "public")
		unexported.Scope().Insert(types.NewVar(token.NoPos, unexported, "v", of))
		if got := internalTypes(unexported); len(got) != 0 {
			t.Errorf("%s of what is not exported: found %q", place, got)
		}
	}
}

// TestPublicPackagesHaveExamples: the documentation of each public package has an example, which the
// compiler checks.
func TestPublicPackagesHaveExamples(t *testing.T) {
	example := regexp.MustCompile(`(?m)^func Example`)
	for _, importPath := range publicPackages(t) {
		folder := strings.TrimPrefix(importPath, modulePath+"/")
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return example.Match(text)
		}) {
			t.Errorf("package %s has no example", folder)
		}
	}
}

func isInternal(importPath string) bool {
	return slices.Contains(strings.Split(importPath, "/"), "internal")
}

// typeLoader reads the types of packages from the export data of the compiler.
func typeLoader(t *testing.T) func(importPath string) *types.Package {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.String())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		importPath, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[importPath] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(importPath string) (io.ReadCloser, error) {
		if exports[importPath] == "" {
			return nil, fmt.Errorf("the compiler exports nothing of %s", importPath)
		}
		return os.Open(exports[importPath])
	})
	return func(importPath string) *types.Package {
		t.Helper()
		p, err := from.Import(importPath)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// internalTypes returns the internal types of this module that exported identifiers of a
// package name, with the identifier.
func internalTypes(p *types.Package) []string {
	w := signatureWalk{public: p}
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		w.visit(name, object.Type())
		if declared, ok := object.(*types.TypeName); ok {
			w.visitDeclared(name, declared.Type())
		}
	}
	return w.found
}

type signatureWalk struct {
	public *types.Package
	found  []string
}

// visitDeclared visits the underlying type of a declared type, and its methods.
func (w *signatureWalk) visitDeclared(name string, declared types.Type) {
	named, ok := types.Unalias(declared).(*types.Named)
	if !ok || named.Obj().Pkg() != w.public {
		return
	}
	w.visit(name, named.Underlying())
	for method := range named.Methods() {
		if method.Exported() {
			w.visit(name+"."+method.Name(), method.Type())
		}
	}
}

// visit reports internal types in a type. It does not visit the declarations of named types.
func (w *signatureWalk) visit(name string, in types.Type) {
	switch in := in.(type) {
	case *types.Alias:
		w.visit(name, types.Unalias(in))
	case *types.Named:
		if p := in.Obj().Pkg(); p != nil && isInternal(p.Path()) && strings.HasPrefix(p.Path(), modulePath) {
			w.found = append(w.found, fmt.Sprintf("%s names %s", name, in))
		}
		for argument := range in.TypeArgs().Types() {
			w.visit(name, argument)
		}
	case *types.Map:
		w.visit(name, in.Key())
		w.visit(name, in.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		w.visit(name, in.Elem())
	case *types.Signature:
		for v := range in.Params().Variables() {
			w.visit(name, v.Type())
		}
		for v := range in.Results().Variables() {
			w.visit(name, v.Type())
		}
	case *types.Struct:
		for field := range in.Fields() {
			if field.Exported() {
				w.visit(name+"."+field.Name(), field.Type())
			}
		}
	case *types.Interface:
		for method := range in.Methods() {
			w.visit(name+"."+method.Name(), method.Type())
		}
	}
}
