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

const reasonsPage = "docs/reasons.md"

// TestReasonsPageHasEveryCode compares the codes that the module declares with
// the headings of the page that explains them.
func TestReasonsPageHasEveryCode(t *testing.T) {
	declared, sections := declaredCodes(t), reasonSections(t)
	for code, where := range declared {
		if _, ok := sections[code]; !ok {
			t.Errorf("%s lacks a section on %s, which %s declares", reasonsPage, code, where)
		}
	}
	for code := range sections {
		if _, ok := declared[code]; !ok {
			t.Errorf("%s has a section on %s, which nothing declares", reasonsPage, code)
		}
	}
}

func TestReasonsPageSaysWhatWhyAndWhatToDo(t *testing.T) {
	for code, text := range reasonSections(t) {
		for _, part := range []string{"**What it means.** ", "**Typical cause.** ", "**What to do.** "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the section on %s lacks %q", reasonsPage, code, part)
			}
		}
	}
}

// reasonSections returns the text under each code's heading.
func reasonSections(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(reasonsPage)
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
				t.Errorf("%s has two sections on %s", reasonsPage, match[1])
			}
			sections[match[1]] = string(page[h[1]:end])
		}
	}
	return sections
}

// declaredCodes returns every constant of type verdict.Code, by its value, with
// the file that declares it.
func declaredCodes(t *testing.T) map[string]string {
	t.Helper()
	codes := map[string]string{}
	for _, file := range sourceFiles(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 {
				return true
			}
			if typ, ok := spec.Type.(*ast.SelectorExpr); !ok || typ.Sel.Name != "Code" {
				return true
			}
			for _, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					code, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					codes[code] = file
				}
			}
			return true
		})
	}
	return codes
}

// sourceFiles returns the Go files of this module, tests left out, sorted.
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
