package browser

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli"
)

// otherHeadings are the headings of the text that the page words otherwise.
var otherHeadings = map[string]string{
	"not checked":    "checks",
	"what they lack": "not everything could be read",
}

// Every row of the text is on the page, for all doctor results of the scripts of the command line and of the
// tests of the doctor.
func TestTheDoctorPageHasTheRowsOfTheText(t *testing.T) {
	scripts, err := filepath.Glob("../../internal/cli/testdata/script/doctor*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	results := 0
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		commands, folder := unpack(t, string(text))
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Chdir(folder)
			for _, args := range commands {
				results += compare(t, args)
			}
		})
	}
	const inputs = "../../internal/doctor/testdata"
	files, err := filepath.Glob(inputs + "/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(inputs + "/distributions/*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range append(files, folders...) {
		t.Run(filepath.Base(input), func(t *testing.T) {
			results += compare(t, []string{"doctor", "--from", input})
		})
	}
	if results < 40 {
		t.Errorf("only %d results were compared", results)
	}
}

// unpack writes the files of a script to a new folder, and returns its doctor commands that read files only.
func unpack(t *testing.T, script string) (commands [][]string, folder string) {
	t.Helper()
	folder = t.TempDir()
	marks := regexp.MustCompile(`(?m)^-- (\S+) --\n`).FindAllStringSubmatchIndex(script, -1)
	for i, m := range marks {
		end := len(script)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		path := filepath.Join(folder, script[m[2]:m[3]])
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(script[m[1]:end]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, found := range regexp.MustCompile(`(?m)^status \d node-authorizer (doctor .*--from.*)$`).FindAllStringSubmatch(script, -1) {
		args := strings.Fields(found[1])
		if at := slices.Index(args, "-o"); at > 0 {
			args = slices.Delete(args, at, at+2)
		}
		if !strings.Contains(found[1], "$") && !slices.Contains(args, "-") && !slices.Contains(args, "--plan") {
			commands = append(commands, args)
		}
	}
	return commands, folder
}

// compare opens the page of a command, and looks for the rows of its text. It returns 0 if the command has no
// result.
func compare(t *testing.T, args []string) int {
	t.Helper()
	var text, errOut bytes.Buffer
	cli.Main(append(append([]string{"node-authorizer"}, args...), "-o", "wide", "--show-known"), strings.NewReader(""), &text, &errOut)
	if text.Len() == 0 {
		return 0
	}
	p := open(t, html(t, args...), "", light)
	rows := eval[[]string](p,
		`[...document.querySelectorAll('tr, li, p, h1, h2, h3, dl > div, .remedy, summary')].map((e) => e.textContent).concat(
			[...document.querySelectorAll('a[href^=http]')].map((e) => e.textContent + ' ' + e.href))`)
	for i := range rows {
		rows[i] = words(rows[i])
	}
	// The page has no section with the links of codes: each code is a link.
	shown := strings.Replace(strings.TrimPrefix(text.String(), "Examined "), "\nCodes\n", "\n", 1)
	for i, line := range strings.Split(shown, "\n") {
		parts := []string{line}
		if i == 1 { // the headline, whose first part is the headline of the page
			parts = strings.Split(line, "; ")
		}
		for _, row := range parts {
			if !slices.ContainsFunc(rows, func(shown string) bool { return hasCells(shown, row) }) {
				t.Errorf("%s: the page has no %q", strings.Join(args, " "), strings.TrimSpace(row))
			}
		}
	}
	return 1
}

// hasCells reports whether a row of the page has the cells of a row of text, in order.
func hasCells(shown, row string) bool {
	for _, cell := range regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(row), -1) {
		cell = words(cell)
		if other, ok := otherHeadings[cell]; ok {
			cell = other
		}
		at := strings.Index(shown, cell)
		if at < 0 {
			return false
		}
		shown = shown[at+len(cell):]
	}
	return true
}

// words returns the words of a text in lower case, without punctuation and layout.
func words(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return strings.ContainsRune(" \t\n\u00a0:;,.→●◐?○()", r)
	}), " ")
}
