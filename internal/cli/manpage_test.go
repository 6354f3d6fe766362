package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func testManual() manual {
	return manual{version: "v1.2.3", date: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}
}

// manualPages are the pages of all commands, by the names of their files.
func manualPages(t *testing.T) map[string]string {
	t.Helper()
	folder, pages := t.TempDir(), map[string]string{}
	if err := testManual().write(newTopic(newRoot()), folder); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pages[file.Name()] = string(text)
	}
	return pages
}

// TestManualPage compares one page with a golden file. UPDATE_GOLDEN=1 writes it.
func TestManualPage(t *testing.T) {
	const name = "node-authorizer-config-validate.1"
	writeGolden(t, filepath.Join("testdata", name), []byte(manualPages(t)[name]))
}

// TestManualPagesAreRegular checks the language of all pages: known macros, in an order that renderers
// do not warn of, and nothing that a renderer would take for a macro or an escape.
func TestManualPagesAreRegular(t *testing.T) {
	macro := regexp.MustCompile(`^\.(TH( "[^"\\]*"){5}|SH "[A-Z :,-]+"|PP|TP|RS 4|RE|nf|fi|nh|ad l)$`)
	plain := regexp.MustCompile(`^(?:[^\\]|\\(?:[-e&]|f[BIR]|\((?:dq|aq|ga|ha|ti)|\[u[0-9A-F]{4,6}\]))*$`)
	pages, commands := manualPages(t), 0
	for name, page := range pages {
		commands++
		title := `.TH "` + strings.ToUpper(strings.TrimSuffix(name, ".1")) + `" "1" "2026-01-31" "node-authorizer v1.2.3" "`
		if !strings.HasPrefix(page, title) {
			t.Errorf("%s begins with %s", name, strings.SplitN(page, "\n", 2)[0])
		}
		lines, before := strings.Split(strings.TrimSuffix(page, "\n"), "\n"), ""
		for i, line := range lines {
			switch {
			case strings.HasPrefix(line, "."):
				if !macro.MatchString(line) {
					t.Errorf("%s:%d: %s", name, i+1, line)
				}
				if line == ".PP" && (strings.HasPrefix(before, ".SH") || i+1 == len(lines)) ||
					strings.HasPrefix(line, ".SH") && before == ".TP" {
					t.Errorf("%s:%d: %s after %s", name, i+1, line, before)
				}
			case line == "" && !slices.Contains([]string{".nf"}, before), strings.HasPrefix(line, "'"), !plain.MatchString(line),
				strings.ContainsFunc(line, func(r rune) bool { return r > '~' || r < ' ' }):
				t.Errorf("%s:%d: %q", name, i+1, line)
			}
			before = line
		}
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"} {
			if strings.Count(page, "\n.SH \""+section+"\"\n") != 1 {
				t.Errorf("%s has no section %s, or several", name, section)
			}
		}
	}
	if commands < 15 {
		t.Errorf("there are only %d pages", commands)
	}
}

func TestRoffEscapes(t *testing.T) {
	for _, tc := range []struct{ rule, text, want, code string }{
		{"text stays", "a b-c 1.2", "a b-c 1.2", `a b\-c 1.2`},
		{"flags are typed as they are", "with --from (-n), or -", `with \-\-from (\-n), or -`, `with \-\-from (\-n), or \-`},
		{"backslashes", `a\fBb\n`, `a\efBb\en`, `a\efBb\en`},
		{"quotes", `"a" 'b' ` + "`c`", `\(dqa\(dq \(aqb\(aq \(gac\(ga`, `\(dqa\(dq \(aqb\(aq \(gac\(ga`},
		{"other characters", "~/x ^ … é", `\(ti/x \(ha \[u2026] \[u00E9]`, `\(ti/x \(ha \[u2026] \[u00E9]`},
	} {
		if got := roffText(tc.text); got != tc.want {
			t.Errorf("%s: text is %s, want %s", tc.rule, got, tc.want)
		}
		if got := roffCode(tc.text); got != tc.code {
			t.Errorf("%s: code is %s, want %s", tc.rule, got, tc.code)
		}
	}
	r := &roff{}
	r.line(".SH x")
	r.line("'br")
	if got := r.b.String(); got != "\\&.SH x\n\\&'br\n" {
		t.Errorf("lines that begin like macros are %q", got)
	}
}

// TestRenderersDoNotWarn asks the renderers that are installed.
func TestRenderersDoNotWarn(t *testing.T) {
	folder := t.TempDir()
	if err := testManual().write(newTopic(newRoot()), folder); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, renderer := range [][]string{{"mandoc", "-T", "lint", "-W", "warning"}, {"groff", "-man", "-Tutf8", "-ww", "-z"}} {
		path, err := exec.LookPath(renderer[0])
		if err != nil {
			t.Logf("%s is not installed", renderer[0])
			continue
		}
		if out, err := exec.Command(path, append(renderer[1:], files...)...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %v\n%s", renderer, err, out)
		}
	}
}

// TestReferenceIsWhole: each command says what a reader needs.
func TestReferenceIsWhole(t *testing.T) {
	general := []string{"completion", "config defaults", "version"} // which only succeed or fail
	for _, topic := range leaves(newTopic(newRoot())) {
		name := strings.TrimPrefix(topic.name, "node-authorizer ")
		if len(topic.examples) == 0 {
			t.Errorf("%s has no example: set Example", name)
		}
		_, status := passages("")
		if got := topic.status.values; len(got) < 2 || got[0].name != "0" || got[len(got)-1].name < "2" {
			t.Errorf("%s: write a paragraph like \"Exit status: 0 allowed, 1 denied, 2 could not decide.\": %+v", name, got)
		} else if same := slices.Equal(got, status.values); same != slices.Contains(general, name) {
			t.Errorf("%s has the general exit statuses: %v; write a paragraph \"Exit status: 0 …\", or change this test", name, same)
		}
		for _, section := range topic.flags {
			for _, f := range section.flags {
				if f.value != strings.ToUpper(f.value) {
					t.Errorf("%s --%s: the value has no name: add it to flagValues", name, f.long)
				}
			}
		}
	}
}

// TestFlagValuesAreUsed: a name whose flag is gone is removed.
func TestFlagValuesAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, topic := range leaves(newTopic(newRoot())) {
		for _, section := range topic.flags {
			for _, f := range section.flags {
				used[f.long] = true
				used[topic.name[strings.LastIndex(topic.name, " ")+1:]+" "+f.long] = true
			}
		}
	}
	for key := range flagValues {
		if !used[key] {
			t.Errorf("no flag has the name %q of flagValues", key)
		}
	}
}
