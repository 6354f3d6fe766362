package typeschema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Source is what the source of a module says about its types.
type Source struct {
	// types and fields are descriptions, by "package.Type" and "package.Type.Field". values are the
	// constants of types of strings, sorted.
	types, fields map[string]string
	values        map[string][]string
	// meanings are the comments of the constants that are in the package of their type. constants are
	// the values of all constants that are strings, by "package.Name".
	meanings  map[string][]meaning
	constants map[string]string
}

// meaning is the comment of a constant.
type meaning struct{ name, value, comment string }

// Read reads the Go files of a module, except tests and modules within it.
func Read(folder, module string) (*Source, error) {
	s := &Source{
		types: map[string]string{}, fields: map[string]string{}, values: map[string][]string{},
		meanings: map[string][]meaning{}, constants: map[string]string{},
	}
	packages := map[string][]*ast.File{}
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && file != folder):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, filepath.Dir(file))
		in := path.Join(module, filepath.ToSlash(relative))
		packages[in] = append(packages[in], parsed)
		return err
	})
	s.add(packages)
	return s, err
}

// add adds constants first: comments may refer to them.
func (s *Source) add(packages map[string][]*ast.File) {
	for _, keyword := range []token.Token{token.CONST, token.TYPE} {
		for in, files := range packages {
			for _, file := range files {
				s.addFile(file, in, keyword)
			}
		}
	}
	for _, values := range s.values {
		slices.Sort(values)
	}
}

// addFile adds the constants or the types of a file of a package.
func (s *Source) addFile(file *ast.File, in string, keyword token.Token) {
	imports := importNames(file)
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != keyword {
			continue
		}
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.addType(in, spec, decl.Doc)
			case *ast.ValueSpec:
				s.addConstants(in, typeName(spec.Type, in, imports), spec)
			}
		}
	}
}

// importNames are the packages that a file imports, by their names in it.
func importNames(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, i := range file.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		local := path.Base(of)
		if i.Name != nil {
			local = i.Name.Name
		}
		imports[local] = of
	}
	return imports
}

// typeName is the name of a type with its package; empty without a type.
func typeName(of ast.Expr, in string, imports map[string]string) string {
	switch of := of.(type) {
	case *ast.Ident:
		return in + "." + of.Name
	case *ast.SelectorExpr:
		if from, ok := of.X.(*ast.Ident); ok {
			return imports[from.Name] + "." + of.Sel.Name
		}
	}
	return ""
}

// addConstants adds constants that are strings.
func (s *Source) addConstants(in, of string, spec *ast.ValueSpec) {
	for i, value := range spec.Values {
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}
		s.constants[in+"."+spec.Names[i].Name] = text
		if of == "" || slices.Contains(s.values[of], text) {
			continue
		}
		s.values[of] = append(s.values[of], text)
		if strings.HasPrefix(of, in+".") && !strings.Contains(text, " ") { // a sentence says what it means
			s.meanings[of] = append(s.meanings[of], meaning{spec.Names[i].Name, text, spec.Doc.Text() + spec.Comment.Text()})
		}
	}
}

func (s *Source) addType(in string, spec *ast.TypeSpec, doc *ast.CommentGroup) {
	of := in + "." + spec.Name.Name
	if spec.Doc != nil {
		doc = spec.Doc
	}
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		s.types[of] = capital(s.prose(in, doc.Text(), nil))
		return
	}
	names := jsonNames(body)
	first, rest, _ := strings.Cut(doc.Text(), " ") // the name of the type
	s.types[of] = strings.TrimSpace(capital(first + " " + s.prose(in, rest, names)))
	comments, shared := fieldComments(body)
	for field, comment := range comments {
		text := s.prose(in, comment, names)
		if shared[comment] == 1 {
			own := quoted(names[field])
			text = strings.TrimPrefix(strings.TrimPrefix(text, own+" is "), own+" are ")
		}
		s.fields[of+"."+field] = capital(text)
	}
}

// describe returns the description of a type, with what its constants mean.
func (s *Source) describe(of string) string {
	text := s.types[of]
	names := map[string]string{}
	for _, m := range s.meanings[of] {
		names[m.name] = m.value
	}
	for _, m := range s.meanings[of] {
		text += " " + s.prose("", m.comment, names)
	}
	return strings.Join(strings.Fields(text), " ")
}
