package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

const commandsIntro = `# Commands

` + commandsWritten + `

What ` + "`node-authorizer COMMAND --help`" + ` says, for all commands. As a plugin of kubectl, they are
` + "`kubectl node-authorizer COMMAND`" + `. Releases have the same as
[manual pages](../releases.md#manual-pages). [Output for programs](../output.md) describes ` + "`-o json`" + `.

`

const commandsWritten = `<!-- Written by "UPDATE_GOLDEN=1 go test ./internal/cli -run TestCommandsPage"; do not edit. -->`

// page is a page in Markdown that is being written.
type markdownPage struct {
	strings.Builder
	// shared are the flags that have a section of their own.
	shared flagSection
}

func (p *markdownPage) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *markdownPage) passages(all []passage, language string) {
	for i, passage := range all {
		if i > 0 {
			p.line("")
		}
		if passage.text != "" {
			p.line("%s", strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`).Replace(passage.text))
			continue
		}
		p.line("```%s\n%s\n```", language, strings.Join(passage.verbatim, "\n"))
	}
}

func (p *markdownPage) terms(heading string, all []helpTerm) {
	if len(all) == 0 {
		return
	}
	p.line("\n%s:\n", heading)
	for _, t := range all {
		p.line("- `%s`: %s", t.name, helpSentence(t.text))
	}
}

func (p *markdownPage) flags(s flagSection) {
	for _, f := range s.flags {
		name := "--" + f.long
		if f.short != "" {
			name = "-" + f.short + ", " + name
		}
		if f.value != "" {
			name += " " + f.value
		}
		fallback := ""
		if f.fallback != "" {
			fallback = " The default is `" + f.fallback + "`."
		}
		p.line("- `%s`: %s%s", name, f.text, fallback)
	}
}

// topic writes a section.
func (p *markdownPage) topic(t *topic) {
	p.line("\n```\n%s\n```\n", t.usage)
	p.passages(t.description, "")
	for _, s := range t.flags {
		if reflect.DeepEqual(s, p.shared) {
			p.line("\n[%s](README.md#connection)", s.heading)
			continue
		}
		p.line("\n%s:\n", s.heading)
		p.flags(s)
	}
	p.terms("Exit status", t.status.values)
	if t.status.notes != "" {
		p.line("\n%s", t.status.notes)
	}
	if len(t.examples) > 0 {
		p.line("\nExamples:\n")
		p.passages(t.examples, "sh")
	}
	p.terms("Environment", t.variables)
	p.terms("Files", t.files)
}

// leaves are the topics of commands that do something.
func leaves(t *topic) []*topic {
	var all []*topic
	if t.acts {
		all = append(all, t)
	}
	for _, c := range t.commands {
		all = append(all, leaves(c)...)
	}
	return all
}

// TestCommandsPage compares docs/reference/commands with the commands: an index, and a page for each command. UPDATE_GOLDEN=1
// writes them.
func TestCommandsPage(t *testing.T) {
	index, pages := &markdownPage{}, map[string]*markdownPage{}
	index.WriteString(commandsIntro)
	all := leaves(newTopic(Root()))
	for _, topic := range all {
		for _, s := range topic.flags {
			if s.heading == command.ConnectionHeading {
				index.shared = s
			}
		}
	}
	for _, topic := range all {
		name := strings.TrimPrefix(topic.name, "node-authorizer ")
		of, _, isPart := strings.Cut(name, " ")
		page := pages[of]
		if page == nil {
			page = &markdownPage{shared: index.shared}
			page.line("# %s\n\n%s\n\n[All commands](README.md)", of, commandsWritten)
			pages[of] = page
		}
		link := of + ".md"
		if isPart {
			link += "#" + strings.ReplaceAll(name, " ", "-")
			page.line("\n## %s", name)
		}
		page.topic(topic)
		index.line("- [%s](%s): %s", name, link, topic.summary)
	}
	index.line("\n## Connection\n\nFlags of all commands that ask a cluster:\n")
	index.flags(index.shared)
	pages["README"] = index
	folder := filepath.Join(repository, "docs", "reference", "commands")
	for name, page := range pages {
		writeGolden(t, filepath.Join(folder, name+".md"), []byte(page.String()))
	}
	if files, err := filepath.Glob(filepath.Join(folder, "*.md")); err != nil || len(files) != len(pages) {
		t.Errorf("%d pages (%v) for %d commands: remove the others", len(files), err, len(pages)-1)
	}
}

// commandLines calls do for each command line of the examples of help, split into words.
func commandLines(do func(name, command string, args []string)) {
	word := regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	for _, topic := range leaves(newTopic(Root())) {
		for _, example := range topic.examples {
			lines := strings.ReplaceAll(strings.Join(example.verbatim, "\n"), "\\\n", " ")
			for line := range strings.FieldsFuncSeq(lines, func(r rune) bool { return strings.ContainsRune("\n|()", r) }) {
				line, _, _ = strings.Cut(line, " >")
				args := word.FindAllString(line, -1)
				if len(args) > 1 && args[0] == "node-authorizer" {
					do(topic.name, line, args[1:])
				}
			}
		}
	}
}

// TestExamplesParse: the examples of help are command lines that the program accepts.
func TestExamplesParse(t *testing.T) {
	seen := 0
	commandLines(func(name, command string, args []string) {
		seen++
		root := Root()
		cmd, rest, err := root.Find(args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil || cmd == root {
			t.Errorf("%s: %s: %v", name, command, err)
		}
	})
	if seen < 40 {
		t.Errorf("only %d command lines were read", seen)
	}
}

// TestExamplesAnswer: the examples of commands that ask about a state are answered, by a state that has the objects that they name.
func TestExamplesAnswer(t *testing.T) {
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := os.ReadFile("testdata/examples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", "none")
	if err := os.Symlink(filepath.Join(root, "examples"), "examples"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cluster.yaml", "manifests.yaml"} {
		if err := os.WriteFile(name, objects, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, label := range map[string]string{"this.yaml": "a", "that.yaml": "b"} {
		node := "apiVersion: v1\nkind: Node\nmetadata: {name: worker-1, uid: u, labels: {example.com/pool: " + label + "}}\n"
		if err := os.WriteFile(name, []byte(node), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cluster.snapshot", "last-week.snapshot", "today.snapshot"} {
		if status, _, stderr := run("snapshot", "--from", "cluster.yaml", "-o", name); status != command.StatusAllowed {
			t.Fatal(stderr)
		}
	}
	asks := []string{"attack-paths", "can-i", "diff", "explain", "quarantine", "reach", "who-can"}
	answered := map[string]int{}
	commandLines(func(_, line string, args []string) {
		noState := slices.Contains(args, "-") || slices.Contains(args, "list") || slices.Contains(args, "release") ||
			slices.Contains(args, "--compare-with") // a file that the command before it writes
		if !slices.Contains(asks, args[0]) || noState {
			return
		}
		if args[0] == "quarantine" && !slices.Contains(args, "--dry-run") {
			return // it writes to a cluster
		}
		if !slices.Contains(args, "--from") {
			args = append(args, "--from", "cluster.snapshot")
		}
		for i := range args {
			args[i] = strings.Trim(args[i], `"'`)
		}
		answered[args[0]]++
		status, stdout, stderr := run(args...)
		if strings.Contains(stderr, "error:") || status > command.StatusUndecided || stdout == "" {
			t.Errorf("%s: status %d, %d bytes\n%s", line, status, len(stdout), stderr)
		}
	})
	for _, name := range asks {
		if answered[name] == 0 {
			t.Errorf("no example of %s was run", name)
		}
	}
}
