package query

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// CodeResult explains a code.
type CodeResult struct {
	// Sections are the sections of the reference about the code: one, or one for each kind of code that it is.
	Sections []reference.Section `json:"sections"`
}

func NewExplainCode(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain-code CODE",
		Short: "Say what a code means and what to do: of a reason, a finding or a technique",
		Long: `Prints the section of the reference about a code: the reason of an answer
(NoPathToObject), a finding of the doctor (NodeRestrictionOff) or a technique of an
attack path (PodExec). The text is in the program: no cluster and no network is asked.
In JSON the text is Markdown.

Exit status: 0 printed, 2 there is no such code.`,
		Example: `  # Why does no path lead to the object, and what helps?
  node-authorizer explain-code NoPathToObject

  # The address of the section
  node-authorizer explain-code PodExec -o json | jq -r '.sections[].link'`,
		Args:              command.Exactly("CODE"),
		ValidArgsFunction: command.Complete(codes),
	}
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML)
	output.RunE(func(_ *cobra.Command, args []string, format render.Format) error {
		found := slices.DeleteFunc(reference.Sections(), func(s reference.Section) bool { return !strings.EqualFold(s.Code, args[0]) })
		if len(found) == 0 {
			return command.Usagef("unknown code %q%s", args[0], command.DidYouMean(args[0], codes()))
		}
		return a.Write(CodeResult{found}, format)
	})
	return cmd
}

func codes() (all []string) {
	for _, s := range reference.Sections() {
		all = append(all, s.Code)
	}
	return all
}

// link is a link in Markdown, of which people read the text.
var link = regexp.MustCompile(`\[([^]]+)\]\([^)]+\)`)

func (r CodeResult) Text(p *render.Page) {
	for _, s := range r.Sections {
		p.Section("%s, a %s", s.Code, s.Kind)
		p.Line("")
		for line := range strings.Lines(link.ReplaceAllString(s.Text, "$1")) {
			p.Script("%s", strings.ReplaceAll(strings.TrimRight(line, "\n"), "**", ""))
		}
		p.Line("")
		p.Line("%s", s.Link)
	}
}

func (CodeResult) DocumentKind() string { return "CodeExplanation" }
