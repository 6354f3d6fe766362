package nodeauthorizer_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// maxFiles is how many files of Go a package may have, without tests. Those that have more say so in ARCHITECTURE.md.
const maxFiles = 45

// slack is by how many lines a package may be smaller than its budget, and step the number that budgets are multiples of.
const slack, step = 100, 50

// size is how many lines and files a package has, without tests.
type size struct{ lines, files int }

var budgetRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([0-9]+) \\|(?: ([0-9]+))? \\|\n")

// TestSizesStayWithinBudgets compares the lines of packages with the table of sizes in ARCHITECTURE.md. With UPDATE_GOLDEN set,
// it lowers budgets; who raises one edits the table, and says why.
func TestSizesStayWithinBudgets(t *testing.T) {
	sizes, total := sizesOfPackages(t), 0
	for _, s := range sizes {
		total += s.lines
	}
	sizes["total"] = size{lines: total}
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	lowered := budgetRow.ReplaceAllStringFunc(string(page), func(text string) string {
		row := budgetRow.FindStringSubmatch(text)
		budget, _ := strconv.Atoi(row[2])
		files, err := strconv.Atoi(row[3])
		if err != nil {
			files = maxFiles
		}
		has, exists := sizes[row[1]]
		lower := min(budget, (has.lines+step-1)/step*step)
		delete(sizes, row[1])
		switch {
		case !exists:
			return ""
		case has.lines > budget:
			t.Errorf("%s has %d lines, its budget in ARCHITECTURE.md is %d: remove a mechanism, or raise the budget and say why",
				row[1], has.lines, budget)
		case has.files > files:
			t.Errorf("%s has %d files, its budget in ARCHITECTURE.md is %d: divide the package", row[1], has.files, files)
		case has.lines+slack >= budget && (has.files == files || has.files <= maxFiles && row[3] == ""):
			return text
		case has.files > maxFiles:
			return fmt.Sprintf("| `%s` | %d | %d |\n", row[1], lower, has.files)
		}
		return fmt.Sprintf("| `%s` | %d | |\n", row[1], lower)
	})
	for path, s := range sizes {
		t.Errorf("%s has no budget in ARCHITECTURE.md: it has %d lines in %d files", path, s.lines, s.files)
	}
	switch {
	case lowered == string(page) || t.Failed():
	case os.Getenv("UPDATE_GOLDEN") != "":
		if err := os.WriteFile("ARCHITECTURE.md", []byte(lowered), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("packages are much smaller than their budgets: UPDATE_GOLDEN=1 go test -run TestSizes . lowers these")
	}
}

// sizesOfPackages counts the lines that people have to read: no tests, and no fakes for tests.
func sizesOfPackages(t *testing.T) map[string]size {
	t.Helper()
	sizes := map[string]size{}
	for _, p := range goList(t, "./...") {
		path, ours := inModule(p.ImportPath)
		if !ours || strings.HasPrefix(path, "internal/testing/") {
			continue
		}
		s := size{files: len(p.GoFiles)}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			s.lines += bytes.Count(text, []byte("\n"))
		}
		if s.files > 0 {
			sizes[path] = s
		}
	}
	return sizes
}
