package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/cli/paths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// topic is the section of the reference about one command. docs/reference/commands/README.md is made from it.
type topic struct {
	// name has the names of the commands above: "node-authorizer config validate".
	name, summary, usage string
	// acts is true for a command that does something, whether or not it has commands below it.
	acts             bool
	description      []passage
	commands         []*topic
	flags            []flagSection
	status           exitStatus
	examples         []passage
	variables, files []helpTerm
}

// passage is a paragraph, or lines that stay as they are.
type passage struct {
	text     string
	verbatim []string
}

// helpTerm is something with its description.
type helpTerm struct{ name, text string }

// flagSection is flags under a heading.
type flagSection struct {
	heading string
	flags   []helpFlag
}

// helpFlag is a flag with its help. short and value may be empty.
type helpFlag struct{ short, long, value, text, fallback string }

// exitStatus has the meanings of the exit statuses, and further sentences.
type exitStatus struct {
	values []helpTerm
	notes  string
}

// newTopic describes a command and those below it, but hidden ones.
func newTopic(cmd *cobra.Command) *topic {
	t := &topic{
		name: cmd.Root().Name() + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()), summary: cmd.Short,
		examples: examplesOf(cmd.Example),
	}
	t.usage = t.name + strings.TrimPrefix(cmd.Use, cmd.Name())
	t.description, t.status = passages(cmd.Long)
	if len(t.description) == 0 {
		t.description = []passage{{text: cmd.Short + "."}}
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			t.commands = append(t.commands, newTopic(c))
		}
	}
	if t.acts = command.Acts(cmd); !t.acts {
		t.usage += " COMMAND"
		return t
	}
	headings, groups := command.GroupFlags(cmd)
	for _, heading := range headings {
		if s := newFlagSection(heading, groups[heading]); len(s.flags) > 0 {
			t.flags = append(t.flags, s)
		}
	}
	if len(t.flags) > 0 {
		t.usage += " [flags]"
	}
	t.variables, t.files = surroundings(cmd)
	return t
}

func newFlagSection(heading string, set *pflag.FlagSet) flagSection {
	s := flagSection{heading: heading}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		h := helpFlag{short: f.Shorthand, long: f.Name, text: helpSentence(f.Usage), fallback: f.DefValue}
		if f.Value.Type() != "bool" {
			h.value = f.Value.Type()
		} else if h.fallback == "false" {
			h.fallback = ""
		}
		s.flags = append(s.flags, h)
	})
	return s
}

// passages splits the long description of a command. Indented lines stay as they are.
func passages(long string) (all []passage, status exitStatus) {
	status.values = []helpTerm{{"0", "success"}, {"2", "bad usage, or an error"}}
	for block := range strings.SplitSeq(strings.TrimSpace(long), "\n\n") {
		switch {
		case strings.TrimSpace(block) == "":
		case strings.HasPrefix(block, "  "):
			all = append(all, passage{verbatim: outdented(block)})
		case strings.HasPrefix(block, "Exit status: "):
			status = newExitStatus(strings.TrimPrefix(oneParagraph(block), "Exit status: "))
		default:
			all = append(all, passage{text: oneParagraph(block)})
		}
	}
	return all, status
}

// newExitStatus reads "0 yes, 1 no, 2 could not decide. More about it." A text of another form stays
// as it is.
func newExitStatus(text string) exitStatus {
	first, notes := text, ""
	if end := regexp.MustCompile(`\. [A-Z]`).FindStringIndex(text); end != nil {
		first, notes = text[:end[0]], text[end[0]+2:]
	}
	at := regexp.MustCompile(`(?:^|, )([0-9]) `).FindAllStringSubmatchIndex(first, -1)
	if len(at) < 2 || at[0][0] != 0 || first[at[0][2]] != '0' {
		return exitStatus{notes: helpSentence(text)}
	}
	s := exitStatus{notes: notes}
	for i, match := range at {
		end := len(first)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		s.values = append(s.values, helpTerm{first[match[2]:match[3]], strings.TrimSuffix(first[match[1]:end], ".")})
	}
	return s
}

// examplesOf splits examples. Comments become paragraphs.
func examplesOf(text string) (all []passage) {
	for block := range strings.SplitSeq(text, "\n\n") {
		var lines []string
		flush := func() {
			if len(lines) > 0 {
				all = append(all, passage{verbatim: lines})
			}
			lines = nil
		}
		for _, line := range outdented(block) {
			if comment, ok := strings.CutPrefix(line, "# "); ok {
				flush()
				all = append(all, passage{text: capitalized(comment)})
			} else if line != "" {
				lines = append(lines, line)
			}
		}
		flush()
	}
	return all
}

// outdented are the lines of a block without the two columns before each.
func outdented(block string) []string {
	lines := strings.Split(block, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return lines
}

// helpSentence begins with a capital letter and ends with a full stop.
func helpSentence(text string) string {
	if strings.HasSuffix(text, "…") {
		text = strings.TrimSuffix(text, " …") + " and others"
	}
	return paths.Sentence(text)
}

func oneParagraph(block string) string { return strings.Join(strings.Fields(block), " ") }

// capitalized ends a text that is not a question with a colon: a command follows.
func capitalized(comment string) string {
	if text := helpSentence(comment); !strings.HasSuffix(comment, "?") {
		return strings.TrimSuffix(text, ".") + ":"
	}
	return comment
}

// kubeconfigHelp is the help about the kubeconfig.
const kubeconfigHelp = "The kubeconfig, which names the cluster and the user."

// surroundings are the environment variables and the files that a command reads without an argument.
func surroundings(cmd *cobra.Command) (variables, files []helpTerm) {
	f := cmd.Flags().Lookup("kubeconfig")
	if f != nil && slices.Equal(f.Annotations[command.FlagHeading], []string{command.ConnectionHeading}) {
		variables = append(variables, helpTerm{"KUBECONFIG", kubeconfigHelp + " --kubeconfig comes before it."})
		files = append(files, helpTerm{"~/.kube/config", kubeconfigHelp + " It is read if --kubeconfig and KUBECONFIG name no other."})
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for _, name := range f.Annotations[command.FlagVariable] {
			variables = append(variables, helpTerm{name, "The value of --" + f.Name + ", if it is not given."})
		}
	})
	if f := cmd.Flags().Lookup("output"); f != nil && f.DefValue == string(render.Table) {
		variables = append(variables, helpTerm{"NO_COLOR", "If it is set and not empty, tables have no colors."})
	}
	split := func(annotation string) (all []helpTerm) {
		for line := range strings.Lines(cmd.Annotations[annotation]) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			all = append(all, helpTerm{name, text})
		}
		return all
	}
	return append(variables, split(command.HelpVariables)...), append(files, split(command.HelpFiles)...)
}

// TestReferenceIsWhole: each command has every part that a reader needs.
func TestReferenceIsWhole(t *testing.T) {
	general := []string{"completion", "config defaults", "version"} // which only succeed or fail
	for _, topic := range leaves(newTopic(Root())) {
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
	for _, topic := range leaves(newTopic(Root())) {
		for _, section := range topic.flags {
			for _, f := range section.flags {
				used[f.long] = true
				used[topic.name[strings.LastIndex(topic.name, " ")+1:]+" "+f.long] = true
			}
		}
	}
	for key := range command.FlagValues {
		if !used[key] {
			t.Errorf("no flag has the name %q of flagValues", key)
		}
	}
}
