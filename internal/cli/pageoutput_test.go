package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesShowWhatCommandsPrint runs the commands that pages show with their output: a block of lines "$ bin/node-authorizer …"
// reads only files of the repository. "…" stands for lines that the page leaves out. All other blocks with a prompt need a
// cluster, a file of the reader, or jq (TestOutputPageExamples). The test lists them, and their number is fixed so that none is
// added unseen.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	t.Setenv("KUBECONFIG", "none")
	t.Chdir(repository)
	var pages []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	block := regexp.MustCompile("(?ms)^ *```(?:console)?\n *(\\$ .*?)^ *```$")
	ran, notRun := 0, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			for _, part := range regexp.MustCompile(`(?m)^ *\$ `).Split(b[1], -1)[1:] {
				command, shown, _ := strings.Cut(part, "\n")
				args, ours := strings.CutPrefix(command, "bin/node-authorizer ")
				if !ours {
					notRun++
					t.Logf("not run: %s: %s", page, command)
					continue
				}
				ran++
				if _, printed, stderr := run(strings.Fields(args)...); !shows(printed, shown) {
					t.Errorf("%s: %s prints\n%s%s", page, command, printed, stderr)
				}
			}
		}
	}
	const live = 42
	if ran < 8 || notRun != live {
		t.Errorf("%d commands were run, want 8 or more; %d were not, want %d", ran, notRun, live)
	}
}

// shows reports whether a text is printed as a page shows it, whole or with … for lines that are left out.
func shows(printed, shown string) bool {
	pieces := strings.Split(strings.TrimSpace(shown), "…")
	if len(pieces) == 1 {
		return strings.TrimSpace(printed) == pieces[0]
	}
	for _, piece := range pieces {
		_, rest, found := strings.Cut(printed, strings.Trim(piece, "\n"))
		if !found {
			return false
		}
		printed = rest
	}
	return true
}
