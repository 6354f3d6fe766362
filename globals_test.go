package nodeauthorizer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// sourcePackages returns the parsed files of this module, without tests, by folder.
func sourcePackages(t *testing.T) (*token.FileSet, map[string][]*ast.File) {
	t.Helper()
	fset, packages := token.NewFileSet(), map[string][]*ast.File{}
	for _, path := range sourceFiles(t) {
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
	}
	return fset, packages
}

func TestNothingRunsOnImport(t *testing.T) {
	fset, packages := sourcePackages(t)
	for _, files := range packages {
		for _, file := range files {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%s: an init function", fset.Position(f.Pos()))
				}
			}
		}
	}
}

// TestPackageVariablesAreConstant finds package variables that are assigned to anywhere, that have no
// initial value, or that hold a lock or an atomic value. It does not follow pointers and slices that
// are passed to functions.
func TestPackageVariablesAreConstant(t *testing.T) {
	fset, packages := sourcePackages(t)
	for _, files := range packages {
		variables := packageVariables(files)
		for _, spec := range variables {
			if len(spec.Values) == 0 && !embeddedFiles(spec) {
				t.Errorf("%s: package variable %s has no value to begin with", fset.Position(spec.Pos()), spec.Names[0])
			}
			if changeable(spec) {
				t.Errorf("%s: package variable %s is made to be changed", fset.Position(spec.Pos()), spec.Names[0])
			}
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				for _, target := range assigned(n) {
					if id := root(target); id != nil && isPackageVariable(id, variables) {
						t.Errorf("%s: package variable %s is changed", fset.Position(n.Pos()), id.Name)
					}
				}
				return true
			})
		}
	}
}

// embeddedFiles reports whether a variable holds embedded files, which cannot change.
func embeddedFiles(spec *ast.ValueSpec) bool {
	t, ok := spec.Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := t.X.(*ast.Ident)
	return ok && name.Name == "embed" && t.Sel.Name == "FS"
}

// packageVariables returns the declarations of variables outside functions, by
// name.
func packageVariables(files []*ast.File) map[string]*ast.ValueSpec {
	variables := map[string]*ast.ValueSpec{}
	for _, file := range files {
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.VAR {
				for _, spec := range group.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						if name.Name != "_" {
							variables[name.Name] = spec.(*ast.ValueSpec)
						}
					}
				}
			}
		}
	}
	return variables
}

// changeable reports whether a declaration mentions sync, sync/atomic or make.
func changeable(spec *ast.ValueSpec) bool {
	found := false
	for _, part := range slices.Concat([]ast.Node{spec.Type}, exprs(spec.Values)) {
		if part == nil {
			continue // no type given
		}
		ast.Inspect(part, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && (pkg.Name == "sync" || pkg.Name == "atomic") {
					found = true
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "make" {
					found = true
				}
			}
			return true
		})
	}
	return found
}

func exprs(list []ast.Expr) []ast.Node {
	nodes := make([]ast.Node, len(list))
	for i, e := range list {
		nodes[i] = e
	}
	return nodes
}

// assigned returns the expressions that a statement assigns to.
func assigned(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if _, composite := n.X.(*ast.CompositeLit); n.Op == token.AND && !composite {
			if _, element := n.X.(*ast.Ident); element {
				return []ast.Expr{n.X}
			}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// root returns the variable at the beginning of x, x.f, x[i], *x and (x).
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// isPackageVariable reports whether an identifier refers to one of the variables. The parser resolves
// identifiers that are declared in the same file, and leaves others unresolved.
func isPackageVariable(id *ast.Ident, variables map[string]*ast.ValueSpec) bool {
	spec, ok := variables[id.Name]
	return ok && (id.Obj == nil || id.Obj.Decl == any(spec))
}
