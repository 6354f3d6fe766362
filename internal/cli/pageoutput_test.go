package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// notRun are the classes of the commands on pages that the test cannot run, and why. Their command lines are parsed all the same,
// if they are of node-authorizer.
func notRun() []struct{ class, reason string } {
	return []struct{ class, reason string }{
		{`^(kubectl|for) `, "another program asks or changes a cluster"},
		{
			`^node-authorizer (attest|client|token|revoke|quarantine|server|approve)( |$)`,
			"it talks to machines, to AWS or to a cluster, or serves",
		},
		{`^node-authorizer setup `, "it needs a control plane node: setup.txtar and test/e2e/setup have one"},
		{`^node-authorizer snapshot -o `, "it reads a cluster"},
		{`^node-authorizer doctor.* --probe`, "it asks a live API server"},
		{`^node-authorizer doctor( --plan| --fail-on \w+)?( --audit-report \S+)?( --checks \S+)?$`, "it reads a cluster's configuration"},
		{`^node-authorizer .*--(context |all-contexts)`, "it asks several clusters: clusters.txtar has such ones"},
		{`^node-authorizer .*--watch`, "it runs until an interrupt: TestWatch has such ones"},
		{`^node-authorizer doctor --add `, "it reads a cluster, and the configuration of its control plane"},
		{`^node-authorizer doctor --from manifests/ .*baseline`, "the manifests of the reader: doctor-baseline.txtar has such files"},
		{`^node-authorizer config validate .*server.yaml$`, "the file is the reader's, with the certificates that it names"},
		{`^node-authorizer config validate config.yaml$`, "the file is the reader's, with the certificates that it names"},
		{`^node-authorizer (audit|diff .*--with) -`, "another program writes the input"},
		{`^node-authorizer audit merge `, "the reports are of a cluster: audit-merge.txtar has such files"},
		{`NAMESPACE`, "the reader replaces NAMESPACE, NODE and NAME"},
		{`serviceaccount/node-bootstrapper`, "it is an account of OpenShift"},
		{`^node-authorizer diff --with rendered.yaml `, "the manifests are the reader's"},
		{`^node-authorizer scope check -f scope.yaml `, "the scope is the reader's: scope-check.txtar has such files"},
	}
}

// readersFiles are files of a test script that replace the reader's files, by the command. For others, the cluster is
// testdata/examples.yaml.
var readersFiles = map[string]struct {
	script string
	files  map[string]string // by the name on the page
}{
	"audit":  {"audit", map[string]string{"cluster.yaml": "state.yaml", "audit.log": "audit.log"}},
	"scope":  {"scope-suggest", map[string]string{"cluster.yaml": "state.yaml", "audit.log": "audit.log"}},
	"doctor": {"doctor", map[string]string{"aws-auth.yaml": "case2.yaml"}},
}

// pageCommand is a command on a page, with the output that the page shows.
type pageCommand struct{ page, line, shown string }

var (
	pageBlock  = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	pagePrompt = regexp.MustCompile(`(?m)^ *\$ `)
	// pageContinued is a command up to the end of its last line: lines end in | or \, or a quotation or a loop continues.
	pageContinued = regexp.MustCompile(`(?s)^(?:for .*?\n *done|(?:[^\n']*[|\\]\n)*[^\n']*(?:'[^']*'[^\n]*)?)`)
)

// pageCommands returns all commands of a page: the lines with a prompt, and in blocks of a shell all lines of node-authorizer.
func pageCommands(page, text string) (all []pageCommand) {
	for _, block := range pageBlock.FindAllStringSubmatch(text, -1) {
		parts := pagePrompt.Split(block[2], -1)
		for _, part := range parts[1:] {
			line := pageContinued.FindString(part)
			all = append(all, pageCommand{page, line, strings.TrimPrefix(part, line)})
		}
		if block[1] == "sh" {
			for line := range strings.Lines(strings.ReplaceAll(block[2], "\\\n", " ")) {
				if c := (pageCommand{page, line, ""}); len(c.ours()) > 0 {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// ours returns the command lines of node-authorizer in a line of a shell, without comments and redirections.
func (c pageCommand) ours() (lines []string) {
	line := regexp.MustCompile(`\s#.*`).ReplaceAllString(strings.ReplaceAll(c.line, "\\\n", " "), "")
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune("|\n;", r) }) {
		part, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(part), "bin/"), " > ")
		if part = strings.Join(strings.Fields(part), " "); strings.HasPrefix(part, "node-authorizer ") {
			lines = append(lines, part)
		}
	}
	return lines
}

// TestPagesShowWhatCommandsPrint runs the commands of all pages, and compares what they print with what the page shows; "…" stands
// for what the page leaves out. The commands of docs/reference/commands are in the help, and TestExamplesAnswer runs them.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	t.Setenv("KUBECONFIG", "none")
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	var commands []pageCommand
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(filepath.Dir(page)) != "commands" {
				commands = append(commands, pageCommands(page, string(text))...)
			}
		}
	}
	ran, seen := 0, map[string]int{}
	for _, c := range commands {
		lines := c.ours()
		if len(lines) == 0 {
			lines = []string{strings.Join(strings.Fields(c.line), " ")}
		}
		for _, line := range lines {
			parses(t, c.page, line)
			i := slices.IndexFunc(notRun(), func(row struct{ class, reason string }) bool {
				return regexp.MustCompile(row.class).MatchString(line)
			})
			if i >= 0 {
				seen[notRun()[i].class]++
				continue
			}
			if !strings.HasPrefix(line, "node-authorizer ") {
				t.Errorf("%s: %q is of no class in notRun, and is not of node-authorizer", c.page, line)
				continue
			}
			ran++
			c.runs(t, root, line, len(c.ours()) == 1 && !strings.Contains(c.line, "|"))
		}
	}
	for _, row := range notRun() {
		if seen[row.class] == 0 {
			t.Errorf("no command is of the class %s: remove the row", row.class)
		}
	}
	const fewest = 30
	if ran < fewest {
		t.Errorf("%d commands were run, want %d or more", ran, fewest)
	}
	t.Logf("%d commands were run; not run: %v", ran, seen)
}

// parses checks that a line of node-authorizer is a command line that the program accepts.
func parses(t *testing.T, page, line string) {
	args, ours := strings.CutPrefix(line, "node-authorizer ")
	if !ours {
		return
	}
	root := Root()
	cmd, rest, err := root.Find(words(strings.NewReplacer("NAMESPACE", "shop", "NODE", "web-1").Replace(args)))
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil || cmd == root {
		t.Errorf("%s: %s: %v", page, line, err)
	}
}

// words splits a command line as a shell does, as far as pages need it.
func words(line string) []string {
	var all []string
	for _, word := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
		all = append(all, strings.NewReplacer("'", "", `"`, "").Replace(word))
	}
	return all
}

// runs runs a command line in a folder with the files of the reader, and compares the output if the page shows it.
func (c pageCommand) runs(t *testing.T, root, line string, compare bool) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"examples", "scopes", "deploy"} {
		if err := os.Symlink(filepath.Join(root, name), name); err != nil {
			t.Fatal(err)
		}
	}
	args := words(strings.TrimPrefix(line, "node-authorizer "))
	testdata := filepath.Join(root, "internal/cli/testdata")
	files := map[string][]byte{}
	if of, ok := readersFiles[args[0]]; ok {
		archive, err := txtar.ParseFile(filepath.Join(testdata, "script", of.script+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for name, source := range of.files {
			for _, f := range archive.Files {
				if f.Name == source {
					files[name] = f.Data
				}
			}
		}
	}
	if files["cluster.yaml"] == nil {
		text, err := os.ReadFile(filepath.Join(testdata, "examples.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files["cluster.yaml"] = text
	}
	for name, text := range files {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, arg := range args {
		if regexp.MustCompile(`^/var/.*\.log\*?$|^audit-\*\.log$`).MatchString(arg) {
			args[i] = "audit.log"
		}
		if arg == "cluster.snapshot" {
			args[i] = "cluster.yaml"
		}
	}
	asks := []string{"attack-paths", "audit", "can-i", "diff", "explain", "reach", "who-can", "doctor"}
	if slices.Contains(asks, args[0]) && !slices.Contains(args, "--from") || args[0] == "scope" && args[1] == "suggest" {
		args = append(args, "--from", "cluster.yaml")
	}
	status, printed, stderr := run(args...)
	switch {
	case status > command.StatusUndecided || strings.Contains(stderr, "error:") || printed == "":
		t.Errorf("%s: %s: status %d\n%s%s", c.page, line, status, printed, stderr)
	case compare && strings.TrimSpace(c.shown) != "" && !shows(printed, c.shown):
		t.Errorf("%s: %s prints\n%s%s", c.page, line, printed, stderr)
	}
}

// shows reports whether a text is printed as a page shows it, whole or with … for what is left out.
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
