package nodeauthorizer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/docs/reference"
)

// codeKind is a kind of codes, with the package of their type, and the required parts of each section.
type codeKind struct {
	kind  reference.Kind
	codes string
	parts []string
}

func codeKinds() []codeKind {
	return []codeKind{
		{reference.Reason, "verdict", []string{"**What it means.** ", "**Typical cause.** ", "**What to do.** "}},
		{reference.Finding, "finding", []string{"**What it means.** ", "**What happens.** ", "**What to do.** "}},
	}
}

// TestEveryCodeHasASection compares the codes that the module declares with the sections that explain them.
func TestEveryCodeHasASection(t *testing.T) {
	for _, kind := range codeKinds() {
		declared, sections := declaredCodes(t, kind.codes), codeSections(kind.kind)
		if kind.kind == reference.Reason {
			for code, file := range declaredCodes(t, "attackpaths") {
				if file == "attackpaths/scopewarnings.go" {
					declared[code] = file // a warning has no answer of its own
				}
			}
		}
		for code, where := range declared {
			if _, ok := sections[code]; !ok {
				t.Errorf("docs/reference/%ss lacks a section on %s, which %s declares", kind.kind, code, where)
			}
		}
		for code, text := range sections {
			if _, ok := declared[code]; !ok {
				t.Errorf("docs/reference/%ss has a section on %s, which nothing declares", kind.kind, code)
			}
			for _, part := range kind.parts {
				if !strings.Contains(text, part) {
					t.Errorf("docs/reference/%ss: the section on %s lacks %q", kind.kind, code, part)
				}
			}
		}
	}
}

// TestRefusalsSayTheirRemedy compares the codes that the tables of remedies have with the sections that
// say what the remedy is.
func TestRefusalsSayTheirRemedy(t *testing.T) {
	inTables := map[string]bool{}
	for _, file := range []string{"nodeauthz/remedy.go", "noderestriction/remedy.go"} {
		for _, code := range tableKeys(t, file, "remedies") {
			inTables[code] = true
		}
	}
	const fewest = 45
	if len(inTables) < fewest {
		t.Fatalf("the tables have only %d codes", len(inTables))
	}
	for code, text := range codeSections(reference.Reason) {
		if says := strings.Contains(text, "\n**Remedy.** "); says != inTables[code] {
			t.Errorf("%s: the section has a remedy: %v; a table of remedies has the code: %v", code, says, inTables[code])
		}
	}
}

// tableKeys returns the names of the keys of a map that a file declares.
func tableKeys(t *testing.T, file, table string) (keys []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != table {
			return true
		}
		for _, entry := range spec.Values[0].(*ast.CompositeLit).Elts {
			keys = append(keys, entry.(*ast.KeyValueExpr).Key.(*ast.Ident).Name)
		}
		return false
	})
	return keys
}

// codeSections returns the text of each code's section.
func codeSections(kind reference.Kind) map[string]string {
	sections := map[string]string{}
	for _, s := range reference.Sections() {
		if s.Kind == kind {
			sections[s.Code] = s.Text
		}
	}
	return sections
}

// declaredCodes returns every constant of a package's type Code, by its value,
// with the first file that declares it.
func declaredCodes(t *testing.T, of string) map[string]string {
	t.Helper()
	codes := map[string]string{}
	for _, file := range sourceFiles(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !isCode(spec.Type, of, parsed.Name.Name) {
				return true
			}
			for _, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					code, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					if codes[code] == "" {
						codes[code] = file
					}
				}
			}
			return true
		})
	}
	return codes
}

// isCode reports whether a type that is named in a package is the type Code of another package, or of the same one.
func isCode(typ ast.Expr, of, in string) bool {
	switch typ := typ.(type) {
	case *ast.Ident:
		return typ.Name == "Code" && in == of
	case *ast.SelectorExpr:
		from, ok := typ.X.(*ast.Ident)
		return ok && from.Name == of && typ.Sel.Name == "Code"
	}
	return false
}

// TestPagesNameCodesThatExist: in tables of codes, and in the output of commands on the pages.
func TestPagesNameCodesThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, of := range []string{"verdict", "finding", "attackpaths"} {
		for code := range declaredCodes(t, of) {
			known[code] = true
		}
	}
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("docs/*/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, folders...)
	seen := 0
	for _, page := range append(pages, "README.md", "CHANGELOG.md", "ARCHITECTURE.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range namedCodes(string(text)) {
			if seen++; !known[code] {
				t.Errorf("%s names the code %s, which nothing declares", page, code)
			}
		}
	}
	const fewest = 30
	if seen < fewest {
		t.Errorf("the pages name only %d codes", seen)
	}
}

var (
	codeColumn   = regexp.MustCompile(`(?im)^\| codes? \|.*\n(?:\|.*\n)+`)
	firstCell    = regexp.MustCompile(`(?m)^\|([^|]*)\|`)
	camelCase    = regexp.MustCompile("`([A-Z][a-z]+(?:[A-Z][A-Za-z]*)+)`")
	answer       = regexp.MustCompile(`(?m)^(?:no|unknown) - [^:\n]+: ([A-Z][a-z]+[A-Z][A-Za-z]*):`)
	outputHeader = regexp.MustCompile(`(?m)^(.*\s)CODE\s.*\n((?:.*\S.*\n)*)`)
)

// namedCodes finds the codes that a page names in tables of codes and in the output of commands.
func namedCodes(page string) (codes []string) {
	for _, table := range codeColumn.FindAllString(page, -1) {
		for _, cell := range firstCell.FindAllStringSubmatch(table, -1) {
			for _, m := range camelCase.FindAllStringSubmatch(cell[1], -1) {
				codes = append(codes, m[1])
			}
		}
	}
	for _, m := range answer.FindAllStringSubmatch(page, -1) {
		codes = append(codes, m[1])
	}
	for _, m := range outputHeader.FindAllStringSubmatch(page, -1) {
		at := len(m[1])
		for line := range strings.SplitSeq(m[2], "\n") {
			if word := regexp.MustCompile(`^[A-Z][a-z]+[A-Z][A-Za-z]*\b`).FindString(line[min(at, len(line)):]); word != "" {
				codes = append(codes, word)
			}
		}
	}
	return codes
}

// TestTheMigrationPageHasTheCodesOfTheAudit: the codes with which the Node authorizer refuses a kubelet, and the one of
// RBAC that the audit gives for kubelets that are no nodes.
func TestTheMigrationPageHasTheCodesOfTheAudit(t *testing.T) {
	want := []string{"NoBindingAllows"}
	allowedOrOther := []string{"PathToObject", "OwnName", "OwnFieldSelector", "GrantedToNodes", "NotANode"}
	for code, file := range declaredCodes(t, "verdict") {
		if filepath.Dir(file) == "nodeauthz" && !slices.Contains(allowedOrOther, code) {
			want = append(want, code)
		}
	}
	page, err := os.ReadFile("docs/guides/migration-identify.md")
	if err != nil {
		t.Fatal(err)
	}
	got := namedCodes(string(page))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/guides/migration-identify.md has the codes %q, and the audit gives %q", got, want)
	}
}

// sourceFiles returns the Go files of this module, without tests, sorted.
func sourceFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if nested := err == nil; nested || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
		}
		if !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}
