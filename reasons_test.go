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
)

// codePage is a page that explains codes, with the package of their type, and the required parts of
// each section.
type codePage struct {
	path, codes string
	parts       []string
}

func codePages() []codePage {
	return []codePage{
		{"docs/reference/reasons/README.md", "verdict", []string{"**What it means.** ", "**Typical cause.** ", "**What to do.** "}},
		{"docs/reference/findings/README.md", "finding", []string{"**What it means.** ", "**What happens.** ", "**What to do.** "}},
	}
}

// TestPagesHaveEveryCode compares the codes that the module declares with the
// headings of the pages that explain them.
func TestPagesHaveEveryCode(t *testing.T) {
	for _, page := range codePages() {
		declared, sections := declaredCodes(t, page.codes), codeSections(t, page.path)
		for code, where := range declared {
			if _, ok := sections[code]; !ok {
				t.Errorf("%s lacks a section on %s, which %s declares", page.path, code, where)
			}
		}
		for code := range sections {
			if _, ok := declared[code]; !ok {
				t.Errorf("%s has a section on %s, which nothing declares", page.path, code)
			}
		}
	}
}

func TestPagesSayWhatWhyAndWhatToDo(t *testing.T) {
	for _, page := range codePages() {
		for code, text := range codeSections(t, page.path) {
			for _, part := range page.parts {
				if !strings.Contains(text, part) {
					t.Errorf("%s: the section on %s lacks %q", page.path, code, part)
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
	const path = "docs/reference/reasons/README.md"
	for code, text := range codeSections(t, path) {
		if says := strings.Contains(text, "\n**Remedy.** "); says != inTables[code] {
			t.Errorf("%s, %s: the section has a remedy: %v; a table of remedies has the code: %v", path, code, says, inTables[code])
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

// codeSections returns the text under each code's heading.
func codeSections(t *testing.T, path string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile("(?m)^#+ .*$")
	code := regexp.MustCompile("^### `([A-Za-z]+)`$")
	sections := map[string]string{}
	at := heading.FindAllStringIndex(string(page), -1)
	for i, h := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if match := code.FindStringSubmatch(string(page[h[0]:h[1]])); match != nil {
			if _, twice := sections[match[1]]; twice {
				t.Errorf("%s has two sections on %s", path, match[1])
			}
			sections[match[1]] = string(page[h[1]:end])
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
	page, err := os.ReadFile("docs/guides/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	got := namedCodes(string(page))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/guides/migration.md has the codes %q, and the audit gives %q", got, want)
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
