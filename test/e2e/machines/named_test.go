package machines

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryAttackHasItsTest checks the tables of README.md: each row names tests,
// and each of these exists.
func TestEveryAttackHasItsTest(t *testing.T) {
	text, err := os.ReadFile("README.md")
	orFatal(t, err)
	named := regexp.MustCompile("`((?:[a-z0-9]+/)*[a-z0-9]+) (Test\\w+)(?:/([^`]+))?`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.Contains(line, "| test |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		name := named.FindStringSubmatch(cells[len(cells)-1])
		if name == nil {
			t.Errorf("no test is named in %s", line)
			continue
		}
		if missing := missingIn(t, name[1], name[2], name[3]); missing != "" {
			t.Errorf("%s is not among the tests of %s", missing, name[1])
		}
	}
	if rows == 0 {
		t.Error("README.md has no rows")
	}
}

// missingIn looks for a test, and a part of it by the text of its name, in the
// test files of a package.
func missingIn(t *testing.T, folder, function, part string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", folder, "*_test.go"))
	orFatal(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		orFatal(t, err)
		if !strings.Contains(string(source), "\nfunc "+function+"(") {
			continue
		}
		if part == "" || strings.Contains(string(source), `"`+part+`"`) {
			return ""
		}
		return function + "/" + part
	}
	return function
}
