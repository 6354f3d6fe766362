package cli

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const commandsIntro = `# Commands

<!-- Written by "UPDATE_GOLDEN=1 go test ./internal/cli -run TestCommandsPage"; do not edit. -->

What ` + "`node-authorizer COMMAND --help`" + ` says, for all commands. As a plugin of kubectl, they are
` + "`kubectl node-authorizer COMMAND`" + `. Releases have the same as
[manual pages](releases.md#manual-pages). [Output for programs](output.md) describes ` + "`-o json`" + `.

`

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
	p.line("\n## %s\n", strings.TrimPrefix(t.name, "node-authorizer "))
	p.line("```\n%s\n```\n", t.usage)
	p.passages(t.description, "")
	for _, s := range t.flags {
		if reflect.DeepEqual(s, p.shared) {
			p.line("\n[%s](#connection)", s.heading)
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

// TestCommandsPage compares docs/commands.md with the commands. UPDATE_GOLDEN=1 writes it.
func TestCommandsPage(t *testing.T) {
	p, all := &markdownPage{}, leaves(newTopic(newRoot()))
	p.WriteString(commandsIntro)
	for _, topic := range all {
		name := strings.TrimPrefix(topic.name, "node-authorizer ")
		p.line("- [%s](#%s): %s", name, strings.ReplaceAll(name, " ", "-"), topic.summary)
		for _, s := range topic.flags {
			if s.heading == connectionHeading {
				p.shared = s
			}
		}
	}
	for _, topic := range all {
		p.topic(topic)
	}
	p.line("\n## Connection\n\nFlags of all commands that ask a cluster:\n")
	p.flags(p.shared)
	writeGolden(t, filepath.Join(repository, "docs", "commands.md"), []byte(p.String()))
}

// TestExamplesParse: the examples of help are command lines that the program accepts.
func TestExamplesParse(t *testing.T) {
	word := regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	seen := 0
	for _, topic := range leaves(newTopic(newRoot())) {
		for _, example := range topic.examples {
			lines := strings.ReplaceAll(strings.Join(example.verbatim, "\n"), "\\\n", " ")
			for command := range strings.FieldsFuncSeq(lines, func(r rune) bool { return strings.ContainsRune("\n|()", r) }) {
				command, _, _ = strings.Cut(command, " >")
				args := word.FindAllString(command, -1)
				if len(args) < 2 || args[0] != "node-authorizer" {
					continue
				}
				seen++
				root := newRoot()
				cmd, rest, err := root.Find(args[1:])
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil || cmd == root {
					t.Errorf("%s: %s: %v", topic.name, command, err)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d command lines were read", seen)
	}
}
